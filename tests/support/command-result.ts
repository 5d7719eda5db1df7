/** Exit code and output of a command. */
export interface CommandResult {
  code: number
  stdout: string
  stderr: string
}

/** Reads a started command to its end. */
export async function finished(child: Bun.Subprocess<Bun.SpawnOptions.Writable, 'pipe', 'pipe'>): Promise<CommandResult> {
  const [stdout, stderr, code] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text(), child.exited])
  return { code, stdout, stderr }
}
