/*
 * What the columns of lists are called for people: a word that -o and --sort take beside the names
 * of Ganeti's fields, and a title. Clients of Ganeti know neither.
 */
#pragma once

/* The field of that kind of row that a word stands for; the word itself if it is none of these. */
const char *columns_field(const char *what, const char *word);
/* The title of a field's column; NULL: it has the one of fields.def. */
const char *columns_title(const char *what, const char *field);
