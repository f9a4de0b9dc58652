/* `fettle-noded join [--root DIR] [TOKEN]`: makes this host a node, and ends (io/net/join.h). */
#pragma once

/* The whole of that command; argv[0] is "join". The exit code. */
int noded_join(int argc, char **argv);
