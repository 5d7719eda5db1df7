/** Exit code and output of a command. */
export interface CommandResult {
  code: number
  stdout: string
  stderr: string
}
