/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"
#include "base/cleanup.h"
#include "config/config.h"
#include "config/schema.h"

#define VALUE_MAX_BYTES ((size_t)128 << 10)

struct shower {
	config_show_fn show;
	void *context;
	bool no_memory;
};

static void show_leaf(void *context, const struct leaf *leaf)
{
	_cleanup_(buf_deinit) struct buf text = BUF_INIT(VALUE_MAX_BYTES);
	_cleanup_(buf_deinit) struct buf from = BUF_INIT(1000);
	const char *otherwise = leaf->key->otherwise;
	struct shower *shower = context;

	field_format(leaf->key, leaf->value, &text);
	if (leaf->node)
		place_format(&leaf->node->place, &from);
	else if (otherwise && text.size)
		buf_printf(&from, "default: %s", otherwise);
	else
		buf_text(&from, "default");
	/* nothing is set, and nothing will be: say what happens instead */
	if (!text.size && otherwise)
		buf_printf(&text, "(%s)", otherwise);
	shower->no_memory |= text.failed || from.failed;
	shower->show(shower->context, leaf->path, buf_str(&text), buf_str(&from));
}

int config_show(const struct config *config, config_show_fn show, void *context,
		struct outbox_error *err)
{
	struct shower shower = { .show = show, .context = context };

	schema_walk(&schema_root, config->root, config, show_leaf, &shower);
	return shower.no_memory ? outbox_fail(err, OUTBOX_ENOMEM, "out of memory") : OUTBOX_OK;
}
