/* SPDX-License-Identifier: Apache-2.0 */

#include <outbox/outbox.h>

/* OUTBOX_VERSION comes from meson.build; tests/system/headers proves that outbox.h says the same. */
const char *outbox_version(void)
{
	return OUTBOX_VERSION;
}
