import { messageOf } from '../../src/wire/error-message.ts'

/** A command of the build failed; the message holds the end of its output. */
export class CommandError extends Error {
  override name = 'CommandError'
}

/** Runs a command to its end and returns its output; `heard` receives each line of stderr. */
export async function run(
  command: readonly string[],
  { heard, ...where }: { cwd?: string; env?: Record<string, string | undefined>; heard?: (line: string) => void } = {},
): Promise<string> {
  let child: Bun.Subprocess<'ignore', 'pipe', 'pipe'>
  try {
    child = Bun.spawn([...command], { ...where, stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' })
  } catch (error) {
    throw new CommandError(`run "${command[0]}": ${messageOf(error)}`)
  }
  const last: string[] = []
  const listen = async () => {
    let rest = ''
    const hear = (line: string) => {
      last.push(line)
      if (last.length > 30) last.shift()
      heard?.(line)
    }
    for await (const text of child.stderr.pipeThrough(new TextDecoderStream())) {
      const lines = (rest + text).split('\n')
      rest = lines.pop() ?? ''
      for (const line of lines) hear(line)
    }
    if (rest) hear(rest)
  }
  const [output] = await Promise.all([new Response(child.stdout).text(), listen()])
  const code = await child.exited
  if (code !== 0) throw new CommandError(`${command.join(' ')}: exit code ${code}\n${last.join('\n')}`)
  return output
}
