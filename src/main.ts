/** One binary, many names: argv[0] selects the program. */
import { type Program, programs } from './program-table.ts'

function choose(): { program?: (() => Promise<Program>) | undefined; name: string; args: string[] } {
  // A downloaded talosctl has its platform in its name, such as talosctl-darwin-arm64.
  const name = (process.argv0.split('/').at(-1) ?? '').replace(/^-/, '').replace(/^talosctl-\w+-\w+$/, 'talosctl')
  const args = process.argv.slice(2)
  if (Object.hasOwn(programs, name)) return { program: programs[name]?.load, name, args }
  const first = args[0] ?? ''
  return { program: Object.hasOwn(programs, first) ? programs[first]?.load : undefined, name: first || name, args: args.slice(1) }
}

const { program, name, args } = choose()
if (program) {
  const { main } = await program()
  process.exitCode = await main(args)
} else {
  console.error(`no program "${name}" in this binary: call it by, or with, one of ${Object.keys(programs).join(', ')}`)
  process.exitCode = 64
}
