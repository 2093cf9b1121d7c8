/* SPDX-License-Identifier: Apache-2.0 */
/* file: under the transport contract. */

#include "transport_file_place.h"

int main(void)
{
	return transport_contract_run(&file_fixture);
}
