/* SPDX-License-Identifier: Apache-2.0 */

/* What a program's start costs without the program. */

int main(void)
{
	return 0;
}
