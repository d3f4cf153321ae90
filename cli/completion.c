/* completion.c — completion scripts for bash and zsh. They are generated once, when mdot is built, from the same
 * tables as `--help`, so that pressing Tab starts no program. */
#include "cli/command.h"

#include <string.h>

static bool is_shown(const cli_option *option)
{
    return option->help != NULL;
}

/* Prints the possible values of an option. Values in the tables are plain words for a shell, except that zsh requires
 * colons to be quoted. */
static void put_words(FILE *stream, const cli_option *option, const char *colon)
{
    const char *const *words = option->names != NULL ? option->names() : option->choices;
    for (size_t i = 0; words != NULL && words[i] != NULL; i++) {
        if (i > 0) fputc(' ', stream);
        for (const char *c = words[i]; *c != '\0'; c++) *c == ':' ? fputs(colon, stream) : fputc(*c, stream);
    }
}

static bool has_words(const cli_option *option)
{
    return option->names != NULL || option->choices != NULL;
}

/* ---- bash ------------------------------------------------------------------------------------------------------- */

static const char bash_head[] =
    "# bash completion for mdot(1), made by `mdot help --completion bash`\n"
    "\n"
    "# Files with one of the suffixes in $1 (onnx|job; * for all), and folders.\n"
    "_mdot_files() {\n"
    "    local file\n"
    "    compopt -o filenames 2>/dev/null\n"
    "    while IFS= read -r file; do\n"
    "        if [[ -d $file || $1 == '*' || $file =~ \\.($1)$ ]]; then COMPREPLY+=(\"$file\"); fi\n"
    "    done < <(compgen -f -- \"$cur\")\n"
    "}\n"
    "\n"
    "_mdot_words() {\n"
    "    local word\n"
    "    while IFS= read -r word; do COMPREPLY+=(\"$word\"); done < <(compgen -W \"$1\" -- \"$cur\")\n"
    "}\n"
    "\n"
    "# The last of a list with commas.\n"
    "_mdot_list() {\n"
    "    local head=\n"
    "    if [[ $cur == *,* ]]; then head=${cur%,*},; fi\n"
    "    local word\n"
    "    while IFS= read -r word; do COMPREPLY+=(\"$head$word\"); done < <(compgen -W \"$1\" -- \"${cur##*,}\")\n"
    "    compopt -o nospace 2>/dev/null\n"
    "}\n"
    "\n"
    "# $cur is the word that is written, $prev the one before it.\n"
    "_mdot_command() {\n"
    "    if ((COMP_CWORD == 1)); then\n"
    "        _mdot_words '";

/* bash splits words at '=' and ':' and expects only the text behind the last of them. */
static const char bash_tail[] =
    "    esac\n"
    "}\n"
    "\n"
    "_mdot() {\n"
    "    local cur=${COMP_WORDS[COMP_CWORD]} prev cut= at=$((COMP_CWORD - 1))\n"
    "    COMPREPLY=()\n"
    "    if [[ $cur == ':' ]]; then cur= at=$COMP_CWORD; fi\n"
    "    while ((at > 1)) && [[ ${COMP_WORDS[at]} == ':' ]]; do\n"
    "        cut=${COMP_WORDS[at - 1]}:$cut\n"
    "        at=$((at - 2))\n"
    "    done\n"
    "    prev=${COMP_WORDS[at]}\n"
    "    if [[ $cur == '=' ]]; then cur=; elif [[ $prev == '=' ]]; then prev=${COMP_WORDS[at - 1]}; fi\n"
    "    cur=$cut$cur\n"
    "    _mdot_command\n"
    "    if ((${#COMPREPLY[@]} > 0)); then COMPREPLY=(\"${COMPREPLY[@]#\"$cut\"}\"); fi\n"
    "}\n"
    "\n"
    "complete -F _mdot mdot\n";

static void put_bash_option(FILE *stream, const cli_option *option)
{
    if (!is_shown(option) || option->value == NULL || option->fallback != NULL) return;
    fprintf(stream, "        --%s", option->name);
    if (option->letter != '\0') fprintf(stream, " | -%c", option->letter);
    fputs(")", stream);
    if (has_words(option)) {
        fprintf(stream, " %s '", option->is_list ? "_mdot_list" : "_mdot_words");
        put_words(stream, option, ":");
        fputs("';", stream);
    } else if (option->files != NULL) {
        fprintf(stream, " _mdot_files '%s';", option->files);
    }
    fputs(" return ;;\n", stream);
}

static void put_bash_command(FILE *stream, const cli_command *command, const cli_command *whole)
{
    const cli_option *option;
    fprintf(stream, "    %s)\n        case $prev in\n", command->name);
    for (size_t i = 0; (option = cli_option_at(command, i)) != NULL; i++) put_bash_option(stream, option);
    fputs("        esac\n        if [[ $cur == -* ]]; then _mdot_words '", stream);
    const char *space = "";
    for (size_t i = 0; (option = cli_option_at(command, i)) != NULL; i++) {
        if (!is_shown(option)) continue;
        fprintf(stream, "%s--%s", space, option->name);
        space = " ";
    }
    fputs("'", stream);
    if (command->files != NULL) fprintf(stream, "; else _mdot_files '%s'", command->files);
    if (command->takes_command) {
        fputs("; else _mdot_words '", stream);
        for (const cli_command *const *c = whole->commands; *c != NULL; c++)
            fprintf(stream, "%s%s", c == whole->commands ? "" : " ", (*c)->name);
        fputs("'", stream);
    }
    fputs("; fi\n        ;;\n", stream);
}

static void print_bash(FILE *stream, const cli_command *whole)
{
    fputs(bash_head, stream);
    for (const cli_command *const *command = whole->commands; *command != NULL; command++)
        fprintf(stream, "%s ", (*command)->name);
    fputs("--help --version'\n        return\n    fi\n    case ${COMP_WORDS[1]} in\n", stream);
    for (const cli_command *const *command = whole->commands; *command != NULL; command++)
        put_bash_command(stream, *command, whole);
    fputs(bash_tail, stream);
}

/* ---- zsh -------------------------------------------------------------------------------------------------------- */

/* Prints text for zsh in single quotes, within brackets or between colons (zshcompsys(1), _arguments). */
static void put_zsh_text(FILE *stream, const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text == '\'') {
            fputs("'\\''", stream);
        } else if (*text == '\n') {
            fputc(' ', stream);
        } else {
            if (strchr("[]:\\", *text) != NULL) fputc('\\', stream);
            fputc(*text, stream);
        }
    }
}

static void put_zsh_files(FILE *stream, const char *suffixes)
{
    if (strcmp(suffixes, "*") == 0)
        fputs("_files", stream);
    else
        fprintf(stream, "_files -g \"*.(%s)(-.)\"", suffixes);
}

static void put_zsh_option(FILE *stream, const cli_option *option)
{
    if (!is_shown(option)) return;
    bool repeats = option->repeats, has_value = option->value != NULL;
    fputs(" \\\n            ", stream);
    if (repeats) {
        fputs("'*'", stream);
    } else {
        fprintf(stream, "'(--%s", option->name);
        if (option->letter != '\0') fprintf(stream, " -%c", option->letter);
        if (option->excludes != NULL) fprintf(stream, " --%s", option->excludes);
        fputs(")'", stream);
    }
    if (option->letter != '\0')
        fprintf(stream, "{-%c%s,--%s%s}'[", option->letter, has_value ? "+" : "", option->name, has_value ? "=" : "");
    else
        fprintf(stream, "'--%s%s[", option->name, option->fallback != NULL ? "=-" : has_value ? "=" : "");
    put_zsh_text(stream, option->help);
    fputs("]", stream);
    if (has_value) {
        fputs(option->fallback != NULL ? "::" : ":", stream);
        put_zsh_text(stream, option->value);
        fputs(":", stream);
        if (has_words(option)) {
            fputs(option->is_list ? " _sequence compadd - " : "(", stream);
            put_words(stream, option, "\\:");
            fputs(option->is_list ? "" : ")", stream);
        } else if (option->files != NULL) {
            put_zsh_files(stream, option->files);
        }
    }
    fputs("'", stream);
}

static void put_zsh_command(FILE *stream, const cli_command *command, const cli_command *whole)
{
    const cli_option *option;
    fprintf(stream, "    %s)\n        _arguments -s -S", command->name);
    for (size_t i = 0; (option = cli_option_at(command, i)) != NULL; i++) put_zsh_option(stream, option);
    if (command->files != NULL) {
        fputs(" \\\n            '*:file:", stream);
        put_zsh_files(stream, command->files);
        fputs("'", stream);
    }
    if (command->takes_command) {
        fputs(" \\\n            '1:command:(", stream);
        for (const cli_command *const *c = whole->commands; *c != NULL; c++)
            fprintf(stream, "%s%s", c == whole->commands ? "" : " ", (*c)->name);
        fputs(")'", stream);
    }
    fputs("\n        ;;\n", stream);
}

static void print_zsh(FILE *stream, const cli_command *whole)
{
    fputs("#compdef mdot\n# zsh completion for mdot(1), made by `mdot help --completion zsh`\n\n"
          "_mdot() {\n"
          "    local -a commands=(",
          stream);
    for (const cli_command *const *command = whole->commands; *command != NULL; command++) {
        fprintf(stream, "\n        '%s:", (*command)->name);
        put_zsh_text(stream, (*command)->summary);
        fputs("'", stream);
    }
    fputs("\n    )\n"
          "    local -a flags=('--help:show this help' '--version:show the version')\n"
          "    if ((CURRENT == 2)); then\n"
          "        _describe command commands -- flags\n"
          "        return\n"
          "    fi\n"
          "    local command=$words[2]\n"
          "    shift words\n"
          "    ((CURRENT--))\n"
          "    case $command in\n",
          stream);
    for (const cli_command *const *command = whole->commands; *command != NULL; command++)
        put_zsh_command(stream, *command, whole);
    fputs("    esac\n}\n\n_mdot \"$@\"\n", stream);
}

bool cli_print_completion(FILE *stream, const char *shell, const cli_command *whole)
{
    bool is_bash = strcmp(shell, "bash") == 0;
    if (!is_bash && strcmp(shell, "zsh") != 0) return false;
    (is_bash ? print_bash : print_zsh)(stream, whole);
    return true;
}
