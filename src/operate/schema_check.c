/* SPDX-License-Identifier: Apache-2.0 */
#include "operate/schema_check.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/printable.h"
#include "base/url.h"

int store_ready(const struct outbox_store_info *info, const char *url, const char *words,
		struct outbox_error *err)
{
	_cleanup_(buf_deinit) struct buf option = BUF_INIT(500);
	char masked[256];

	url_mask(url, masked, sizeof(masked));
	if (!words) {
		buf_text(&option, " --store ");
		buf_shell_word(&option, masked);
		words = buf_str(&option);
	}
	if (info->schema_version == 0 && info->elsewhere[0])
		return outbox_fail(err, OUTBOX_ESCHEMA,
				   "there is no outbox in %s, but there is one in schema \"%s\": put "
				   "schema=%s into the store's URL, or create another: outbox init%s",
				   masked, info->elsewhere, info->elsewhere, words);
	if (info->schema_version == 0)
		return outbox_fail(err, OUTBOX_ESCHEMA,
				   "there is no outbox in %s; create one: outbox init%s", masked,
				   words);
	if (info->schema_version < info->program_version)
		return outbox_fail(err, OUTBOX_ESCHEMA,
				   "%s has schema %d, this program needs %d: outbox upgrade%s",
				   masked, info->schema_version, info->program_version, words);
	return OUTBOX_OK;
}
