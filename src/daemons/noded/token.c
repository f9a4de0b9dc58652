/* See token.h. */
#include "daemons/noded/token.h"

#include <string.h>

#include "base/limits.h"
#include "io/secret_input.h"
#include "proto/invitation.h"

#define INPUT_BYTES (2 * LIMIT_TOKEN_CHARS) /* with the white space that a terminal has put in */

char **token_hide(int argc, char **argv)
{
    GStrv words = g_new0(char *, (gsize)argc + 1);
    bool begun = false;
    for (int i = 0; i < argc; i++) {
        words[i] = g_strdup(argv[i]);
        begun = begun || g_str_has_prefix(argv[i], INVITATION_MARK);
        if (begun)
            memset(argv[i], '*', strlen(argv[i]));
    }
    return words;
}

char *token_read(GError **error)
{
    char *text = secret_input_read("Token (it is not shown): ", INPUT_BYTES, "a token", error);
    if (!text || *g_strstrip(text))
        return text;
    g_free(text);
    fettle_set_error(error, WRONG_INPUT,
                     "the token is missing: it is read from standard input; see fettle-noded "
                     "join --help");
    return NULL;
}
