/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Was the head of a request written in the one way that everybody reads alike? libmicrohttpd before 0.9.77 takes a bare LF
 * for the end of a line, folded lines, and a NUL as the end of a text, and says nothing of it. It reads in place,
 * though: method, target, version, names and values lie where they arrived. So what is between them shows how
 * they were parted. Only offsets of what the library hands out are compared, nothing between them is read. Later
 * versions keep their memory as they like and are asked to be strict themselves (MHD_OPTION_STRICT_FOR_CLIENT, loop.c).
 */
#include "http/framing.h"

#include <microhttpd.h>
#include <string.h>

bool framing_is_needed(void)
{
	const char *version = MHD_get_version();

	return strncmp(version, "0.9.75", 6) == 0 || strncmp(version, "0.9.76", 6) == 0;
}

void framing_begin(struct framing *framing, const char *target)
{
	framing->target = (uintptr_t)target;
	framing->target_end = framing->target + strlen(target);
	framing->at = 0;
	framing->loose = false;
}

void framing_line(struct framing *framing, const char *method, const char *version)
{
	framing->begin = (uintptr_t)method;
	framing->loose |= framing->begin + strlen(method) + 1 != framing->target ||
			  framing->target_end + 1 != (uintptr_t)version;
	framing->at = (uintptr_t)version + strlen(version) + 2;
}

void framing_header(struct framing *framing, const char *name, size_t name_size, const char *value,
		    size_t value_size)
{
	uintptr_t name_end = (uintptr_t)name + name_size, begin = (uintptr_t)value;

	framing->loose |= (uintptr_t)name != framing->at || begin <= name_end;
	framing->at = begin + value_size + 2;
}

bool framing_is_strict(const struct framing *framing, size_t size)
{
	if (!framing_is_needed())
		return true;
	return !framing->loose && framing->at + 2 == framing->begin + size;
}
