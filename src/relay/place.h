/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RELAY_PLACE_H
#define RELAY_PLACE_H

#include <outbox/store.h>

#include <stdbool.h>

/*
 * Where a target's URL leads to, for comparing and for people: scheme, hosts in alphabetical order, path, and the options that
 * say where messages go. Who logs in and how, and how patiently, is no part of it: a rotated password is no other
 * place. A relative path is made absolute. False: the URL cannot be read, nobody knows.
 */
bool place_of(const char *url, char out[OUTBOX_PLACE_MAX]);

#endif
