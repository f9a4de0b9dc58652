/*
 * What a client takes, by headers like Accept and Accept-Encoding: "gzip;q=0.5, *".
 */
#pragma once

/* The share of that word, in whatever case, between 0 and 1; -1: it is not named. */
double accept_share(const char *header, const char *word);
