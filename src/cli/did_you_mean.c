/* See did_you_mean.h. */
#include "cli/did_you_mean.h"

#include <string.h>

#include "cli/cli.h"
#include "proto/nearest.h"

/* Words of Ganeti, Proxmox VE, OpenStack, libvirt and shells; the first that there is counts. */
static const struct synonym {
    const char *word, *means;
} synonyms[] = {
    {"vm", "instance"},     {"guest", "instance"},    {"server", "instance"},
    {"domain", "instance"}, {"host", "node"},         {"hypervisor", "node"},
    {"task", "job"},        {"start", "startup"},     {"boot", "startup"},
    {"stop", "shutdown"},   {"poweroff", "shutdown"}, {"restart", "reboot"},
    {"reset", "reboot"},    {"delete", "remove"},     {"destroy", "remove"},
    {"rm", "remove"},       {"add", "create"},        {"new", "create"},
    {"create", "add"},      {"create", "invite"},     {"ls", "list"},
    {"show", "info"},       {"status", "info"},       {"status", "verify"},
    {"check", "verify"},    {"set", "modify"},        {"edit", "modify"},
    {"update", "modify"},   {"resize", "grow-disk"},  {"rebuild", "reinstall"},
    {"drain", "evacuate"},  {"kill", "cancel"},       {"follow", "watch"},
    {"log", "info"},        {"remove", "delete"},     {"rm", "delete"},
    {"destroy", "delete"},  {"resize", "extend"},     {"grow", "extend"},
    {"set", "rename"},      {"disk", "volume"},
};

const char *did_you_mean_synonym(const char *word, const char *const *words)
{
    for (size_t i = 0; i < G_N_ELEMENTS(synonyms); i++)
        if (strcmp(synonyms[i].word, word) == 0 && g_strv_contains(words, synonyms[i].means))
            return synonyms[i].means;
    return NULL;
}

static const char *meant(const char *word, const GPtrArray *words)
{
    const char *const *list = (const char *const *)words->pdata;
    const char *same = did_you_mean_synonym(word, list);
    return same != NULL ? same : nearest_word(word, list);
}

static void set_no_verb(const char *noun, const GPtrArray *verbs, GError **error)
{
    g_autofree char *list = g_strjoinv(", ", (char **)verbs->pdata);
    fettle_set_error(error, WRONG_INPUT, "%s needs a word more: %s; see fettle %s --help", noun,
                     list, noun);
}

/* The verb that was meant with this noun, as it is or by what it means; NULL: none. */
static const char *meant_verb(const char *noun, const char *verb)
{
    g_autoptr(GPtrArray) verbs = cli_verbs(noun);
    if (verb == NULL || verbs->len <= 1)
        return NULL;
    return g_strv_contains((const char *const *)verbs->pdata, verb) ? verb : meant(verb, verbs);
}

void did_you_mean_set_error(const char *noun, const char *verb, GError **error)
{
    g_autoptr(GPtrArray) nouns = cli_nouns();
    bool known = g_strv_contains((const char *const *)nouns->pdata, noun);
    if (known && verb == NULL) {
        g_autoptr(GPtrArray) verbs = cli_verbs(noun);
        set_no_verb(noun, verbs, error);
        return;
    }
    const char *near_noun = known ? noun : meant(noun, nouns);
    const char *near_verb = near_noun != NULL ? meant_verb(near_noun, verb) : NULL;
    g_autofree char *near =
        near_noun == NULL || (known && near_verb == NULL)
            ? g_strdup("")
            : g_strdup_printf(" did you mean \"fettle %s%s%s\"?", near_noun,
                              near_verb != NULL ? " " : "", near_verb != NULL ? near_verb : "");
    fettle_set_error(error, WRONG_INPUT, "there is no command \"%s%s%s\";%s see fettle %s%s--help",
                     noun, verb != NULL ? " " : "", verb != NULL ? verb : "", near,
                     known ? noun : "", known ? " " : "");
}
