/*
 * Settling an export (SAF-12): what noded and the fail-stop plugin agree on. Also included by the
 * plugin.
 *
 * Connecting to an export's control socket asks for it, these words are the answer, and a
 * connection that ends without them is a no.
 */
#pragma once

#define SETTLED "fettle: settled\n"
