/*
 * Whom a TLS connection trusts that was not told yet: nobody. GIO's own answer is all authorities
 * that the host trusts, which no process of ours ever does (6 MB, and as many names in each
 * handshake). Each connection is told its authority; but what this default is made of is read for
 * every new one, so it must not be a file that may go.
 */
#pragma once

/* Of this process, from now on. Called by whoever makes connections; again does no harm. */
void trust_nobody(void);
