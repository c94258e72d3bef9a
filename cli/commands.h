/* commands.h - the subcommands: each parses its own arguments and returns the exit status. */
#ifndef GMD_CLI_COMMANDS_H
#define GMD_CLI_COMMANDS_H

int cli_run(int argc, char **argv);
int cli_replay(int argc, char **argv);
int cli_fuzz(int argc, char **argv);
int cli_minimize(int argc, char **argv);
int cli_diagnose(int argc, char **argv);
int cli_advise(int argc, char **argv);
int cli_diff(int argc, char **argv);
int cli_report(int argc, char **argv);
int cli_gate(int argc, char **argv);
int cli_probe(int argc, char **argv);
int cli_bench(int argc, char **argv);

#endif
