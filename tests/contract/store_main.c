/* SPDX-License-Identifier: Apache-2.0 */
#include "store_contract.h"

/* The build says which: -DFIXTURE=memory_store_fixture. */
int main(int argc, char **argv)
{
	return store_contract_run(&FIXTURE, argc, argv);
}
