/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"
#include "base/cleanup.h"
#include "config/config.h"
#include "config/schema.h"

#define PATH_MAX_BYTES 400
#define VALUE_MAX_BYTES ((size_t)128 << 10)

struct shower {
	config_show_fn show;
	void *context;
	bool no_memory;
};

static void show_map(struct shower *shower, const struct record *schema, const struct node *map,
		     const void *value, const char *path);

static void show_leaf(struct shower *shower, const struct field *key, const struct node *node,
		      const void *value, const char *path)
{
	_cleanup_(buf_deinit) struct buf text = BUF_INIT(VALUE_MAX_BYTES);
	_cleanup_(buf_deinit) struct buf from = BUF_INIT(1000);

	field_format(key, value, &text);
	if (node)
		place_format(&node->place, &from);
	else if (key->otherwise && text.size)
		buf_printf(&from, "default: %s", key->otherwise);
	else
		buf_text(&from, "default");
	/* nothing is set, and nothing will be: say what happens instead */
	if (!text.size && key->otherwise)
		buf_printf(&text, "(%s)", key->otherwise);
	shower->no_memory |= text.failed || from.failed;
	shower->show(shower->context, path, buf_str(&text), buf_str(&from));
}

static void show_list(struct shower *shower, const struct record *schema, const struct node *list,
		      const struct field_list *value, const char *path)
{
	const struct node *item = list ? list->first : NULL;

	for (size_t i = 0; item && i < value->count; i++, item = item->next) {
		_cleanup_(buf_deinit) struct buf name = BUF_INIT(PATH_MAX_BYTES);

		buf_printf(&name, "%s.%s", path, node_name(item));
		shower->no_memory |= name.failed;
		show_map(shower, schema, item, (const char *)value->items + i * schema->size,
			 buf_str(&name));
	}
}

static void show_map(struct shower *shower, const struct record *schema, const struct node *map,
		     const void *value, const char *path)
{
	for (size_t i = 0; i < schema->count; i++) {
		const struct field *key = &schema->fields[i];
		const struct node *node = node_find(map, key->name);
		const void *field = (const char *)value + key->offset;
		_cleanup_(buf_deinit) struct buf name = BUF_INIT(PATH_MAX_BYTES);

		buf_printf(&name, "%s%s%s", path, *path ? "." : "", key->name);
		shower->no_memory |= name.failed;
		if (key->type == FIELD_OBJECT)
			show_map(shower, key->of, node, field, buf_str(&name));
		else if (key->type == FIELD_LIST)
			show_list(shower, key->of, node, field, buf_str(&name));
		else
			show_leaf(shower, key, node, field, buf_str(&name));
	}
}

int config_show(const struct config *config, config_show_fn show, void *context,
		struct outbox_error *err)
{
	struct shower shower = { .show = show, .context = context };

	show_map(&shower, &schema_root, config->root, config, "");
	return shower.no_memory ? outbox_fail(err, OUTBOX_ENOMEM, "out of memory") : OUTBOX_OK;
}
