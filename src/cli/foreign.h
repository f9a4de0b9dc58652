/*
 * What came from elsewhere and is printed for a person (SAF-108): control characters in it are
 * shown, so that nobody's text moves a cursor or hides a line of the terminal of who reads it.
 * Answers pass through here where they come in, errors where they are printed, so no command has to
 * think of it. With --json nothing is changed, but that what a terminal would obey is printed as
 * the escape of JSON that means the same.
 */
#pragma once

#include <jansson.h>

/* Every text in it, names of members too, in place. It must belong to the caller alone. */
void foreign_show(json_t *json);
/* The same of a text; to be freed. */
char *foreign_text(const char *text);
/* A JSON document as text without any control character but those between its values; `text` is
 * freed. The same document. */
char *foreign_json(char *text);
