/* markdown.c — pages of the manual in Markdown (docs/reference/commands), made from the same tables as `--help`. Man
 * pages are made from them (cmake/man.awk). */
#include "base/command/command.h"

#include <string.h>

/* Prints text outside code. Markdown characters get a backslash, and a line break stays one. */
static void put(FILE *stream, const char *text)
{
    char before = '\n';
    for (bool is_code = false; *text != '\0'; before = *text++) {
        if (*text == '`') is_code = !is_code;
        if (!is_code && strchr("*_<>[]|#\\", *text) != NULL) fputc('\\', stream);
        if (*text == '\n' && text[1] != '\n' && before != '\n') fputc('\\', stream);
        fputc(*text, stream);
    }
}

static void put_section(FILE *stream, const char *title, const char *text)
{
    fprintf(stream, "\n## %s\n\n", title);
    put(stream, text);
    fputc('\n', stream);
}

/* Prints the option as an item of a definition list. */
static void put_option(FILE *stream, const cli_option *option)
{
    fputc('`', stream);
    if (option->letter != '\0') fprintf(stream, "-%c`, `", option->letter);
    fprintf(stream, "--%s", option->name);
    if (option->value != NULL) fprintf(stream, option->fallback != NULL ? "[=%s]" : " %s", option->value);
    fputs("`\n:   ", stream);
    put(stream, option->help);
    fputs("\n\n", stream);
}

static size_t group_size(const cli_command *command, size_t first)
{
    size_t size = 1;
    const cli_option *option;
    while ((option = cli_option_at(command, first + size)) != NULL && option->heading == NULL) size++;
    return size;
}

static bool is_equal(const cli_option *a, const cli_option *b)
{
    bool has_help = a->help != NULL && b->help != NULL;
    return strcmp(a->name, b->name) == 0 && (has_help ? strcmp(a->help, b->help) == 0 : a->help == b->help);
}

/* Whether `other` has the group of `command` that begins at `first`, under the same heading. */
static bool has_group(const cli_command *other, const cli_command *command, size_t first)
{
    const cli_option *option, *head = cli_option_at(command, first);
    size_t size = group_size(command, first);
    for (size_t i = 0; (option = cli_option_at(other, i)) != NULL; i++) {
        if (option->heading == NULL || strcmp(option->heading, head->heading) != 0) continue;
        if (group_size(other, i) != size) return false;
        size_t equal = 0;
        while (equal < size && is_equal(cli_option_at(other, i + equal), cli_option_at(command, first + equal)))
            equal++;
        return equal == size;
    }
    return false;
}

/* The command before `command` whose page has the same group, or NULL. Small groups are repeated. */
static const cli_command *page_with_group(const cli_command *command, size_t first)
{
    enum { LEAST_OPTIONS = 5 };
    if (command == &cli_program || group_size(command, first) < LEAST_OPTIONS) return NULL;
    for (const cli_command *const *other = cli_program.commands; *other != NULL && *other != command; other++)
        if (has_group(*other, command, first)) return *other;
    return NULL;
}

static void put_options(FILE *stream, const cli_command *command)
{
    const cli_option *option;
    fputs("\n## Options\n\n", stream);
    for (size_t i = 0; (option = cli_option_at(command, i)) != NULL; i++) {
        if (option->help == NULL) continue;
        if (option->heading != NULL) fprintf(stream, "### %s\n\n", option->heading);
        const cli_command *other = option->heading != NULL ? page_with_group(command, i) : NULL;
        if (other != NULL) {
            fprintf(stream, "These options are those of [%s %s](%s.md).\n\n", cli_program.name, other->name,
                    other->name);
            i += group_size(command, i) - 1;
        } else {
            put_option(stream, option);
        }
    }
}

static void put_commands(FILE *stream)
{
    fputs("\n## Commands\n\n| command | purpose |\n| --- | --- |\n", stream);
    for (const cli_command *const *command = cli_program.commands; *command != NULL; command++) {
        fprintf(stream, "| [%s %s](%s.md) | ", cli_program.name, (*command)->name, (*command)->name);
        put(stream, (*command)->summary);
        fputs(" |\n", stream);
    }
}

static void put_environment(FILE *stream)
{
    fputs("\n## Environment\n\n", stream);
    for (const cli_variable *variable = cli_program.environment; variable->name != NULL; variable++) {
        fprintf(stream, "%s`%s`\n:   ", variable == cli_program.environment ? "" : "\n", variable->name);
        put(stream, variable->help);
        fputc('\n', stream);
    }
}

void cli_print_markdown(FILE *stream, const cli_command *command)
{
    bool is_whole = command == &cli_program;
    fprintf(stream, "<!-- %s (generated) -->\n", command->summary);
    fprintf(stream, "# %s%s%s\n\n```text\n", cli_program.name, is_whole ? "" : " ", is_whole ? "" : command->name);
    cli_print_synopsis(stream, command, "", "");
    fputs("```\n\n", stream);
    put(stream, command->description);
    fputc('\n', stream);
    if (command->commands != NULL) put_commands(stream);
    put_options(stream, command);
    if (command->notes != NULL) put_section(stream, "Notes", command->notes);
    put_section(stream, "Exit status", command->exit_status != NULL ? command->exit_status : CLI_USUAL_EXIT_STATUS);
    if (is_whole && cli_program.environment != NULL) put_environment(stream);
}
