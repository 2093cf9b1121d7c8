/* SPDX-License-Identifier: Apache-2.0 */

#include "base/failpoint.h"

void failpoint(const char *name)
{
	(void)name;
}
