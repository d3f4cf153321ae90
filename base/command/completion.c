/* completion.c — completion scripts for bash and zsh. They are generated once, when a program is built, from the same
 * tables as `--help`, so that pressing Tab starts no program. */
#include "base/command/command.h"

#include <string.h>

/* Stand for the program's name in the texts: as it is, and as part of a shell function's name. */
#define NAME "@NAME@"
#define FUNCTION "@FUNCTION@"

/* Prints a text with the program's name in place of NAME and FUNCTION. */
static void put_template(FILE *stream, const char *text)
{
    while (*text != '\0') {
        bool is_function = strncmp(text, FUNCTION, strlen(FUNCTION)) == 0;
        bool is_name = is_function || strncmp(text, NAME, strlen(NAME)) == 0;
        const char *name = is_name ? cli_program.name : "";
        for (; *name != '\0'; name++) fputc(is_function && *name == '-' ? '_' : *name, stream);
        if (!is_name) fputc(*text, stream);
        text += is_function ? strlen(FUNCTION) : is_name ? strlen(NAME) : 1;
    }
}

static bool is_shown(const cli_option *option) { return option->help != NULL; }

/* Prints names, with a space between them. Values in the tables are plain words for a shell. */
static void put_names(FILE *stream, const char *const *names)
{
    for (size_t i = 0; names[i] != NULL; i++) fprintf(stream, "%s%s", i > 0 ? " " : "", names[i]);
}

static bool has_words(const cli_option *option) { return option->names != NULL || option->choices != NULL; }

static const char bash_first[] = "    if ((COMP_CWORD == 1)); then\n"
                                 "        _" FUNCTION "_words '";

static void put_commands(FILE *stream)
{
    for (const cli_command *const *command = cli_program.commands; *command != NULL; command++)
        fprintf(stream, "%s%s", command == cli_program.commands ? "" : " ", (*command)->name);
}

static void put_bash_option(FILE *stream, const cli_option *option)
{
    if (!is_shown(option) || option->value == NULL || option->fallback != NULL) return;
    fprintf(stream, "        --%s", option->name);
    if (option->letter != '\0') fprintf(stream, " | -%c", option->letter);
    fputs(")", stream);
    if (has_words(option)) {
        put_template(stream, option->is_list ? " _" FUNCTION "_list '" : " _" FUNCTION "_words '");
        put_names(stream, option->names != NULL ? option->names() : option->choices);
        fputs("';", stream);
    } else if (option->files != NULL) {
        put_template(stream, " _" FUNCTION "_files '");
        fprintf(stream, "%s';", option->files);
    }
    fputs(" return ;;\n", stream);
}

/* Prints the values of options, then their names, then operands. */
static void put_bash_options(FILE *stream, const cli_command *command)
{
    const cli_option *option;
    fputs("        case $prev in\n", stream);
    for (size_t i = 0; (option = cli_option_at(command, i)) != NULL; i++) put_bash_option(stream, option);
    put_template(stream, "        esac\n        if [[ $cur == -* ]]; then _" FUNCTION "_words '");
    const char *space = "";
    for (size_t i = 0; (option = cli_option_at(command, i)) != NULL; i++) {
        if (!is_shown(option)) continue;
        fprintf(stream, "%s--%s", space, option->name);
        space = " ";
    }
    fputs("'", stream);
    if (command->actions != NULL) {
        put_template(stream, "; elif ((COMP_CWORD == 1)); then _" FUNCTION "_words '");
        put_names(stream, command->actions);
        fputs("'", stream);
    }
    if (command->files != NULL) {
        put_template(stream, "; else _" FUNCTION "_files '");
        fprintf(stream, "%s'", command->files);
    }
    if (command->takes_command) {
        put_template(stream, "; else _" FUNCTION "_words '");
        put_commands(stream);
        fputs("'", stream);
    }
    fputs("; fi\n", stream);
}

static void print_bash(FILE *stream)
{
    put_template(stream, cli_bash_head);
    if (cli_program.commands == NULL) {
        put_bash_options(stream, &cli_program);
    } else {
        put_template(stream, bash_first);
        put_commands(stream);
        fputs(" --help --version'\n        return\n    fi\n    case ${COMP_WORDS[1]} in\n", stream);
        for (const cli_command *const *command = cli_program.commands; *command != NULL; command++) {
            fprintf(stream, "    %s)\n", (*command)->name);
            put_bash_options(stream, *command);
            fputs("        ;;\n", stream);
        }
        fputs("    esac\n", stream);
    }
    put_template(stream, cli_bash_tail);
}

/* zsh runs the function of bash. Its own functions compgen and complete stand for those of bash (bashcompinit, which
 * zshcompsys(1) describes). The first Tab reads the file and completes, too. */
static void print_zsh(FILE *stream)
{
    put_template(stream, "#compdef " NAME "\nautoload -U +X bashcompinit && bashcompinit\n");
    print_bash(stream);
    put_template(stream, "_bash_complete -F _" FUNCTION "\n");
}

bool cli_print_completion(FILE *stream, const char *shell)
{
    bool is_bash = strcmp(shell, "bash") == 0;
    if (!is_bash && strcmp(shell, "zsh") != 0) return false;
    (is_bash ? print_bash : print_zsh)(stream);
    return true;
}
