/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_SAFE_H
#define CLI_SAFE_H

#include "base/safe.h"

#endif
