import { Command } from 'commander'
import { machine as wire } from '../../../../rpc/enums.ts'
import type { machine } from '../../../../rpc/messages.ts'
import type { Cluster } from '../../cluster.ts'
import { LiveArgument } from '../../completion/live-argument.ts'
import { paths } from '../../completion/suggestions.ts'
import { NodeErrors, UsageError } from '../../failure.ts'
import { integer, list as values } from '../../flags.ts'
import type { Io } from '../../io.ts'
import { modeText } from '../../output/file-mode.ts'
import { type OutputFlags, outputOption, structured } from '../../output/output.ts'
import { messageSchema } from '../../output/schema.ts'
import { type Row, table } from '../../output/table.ts'
import { humanSize } from '../../output/units.ts'

interface ListOptions extends OutputFlags {
  depth?: number
  humanize?: boolean
  long?: boolean
  recurse?: boolean
  type?: string[]
}

/** talosctl list */
export const list = (io: Io, cluster: Cluster) =>
  new Command()
    .description('List the files of a directory of each node.')
    .addArgument(new LiveArgument('[path]', 'the directory', paths).default('/'))
    .option('-d, --depth <levels>', 'how many levels to go down (default: 1); -1 is all', integer(-1))
    .option('-H, --humanize', 'sizes and times for people, with --long')
    .option('-l, --long', 'with mode, owner, size and time')
    .option('-r, --recurse', 'go down into all directories')
    .option('-t, --type <type>', 'only these: f (regular file), d (directory), l (symbolic link)', values())
    .addOption(outputOption(messageSchema('machine.MachineService/List', { mode: 'string' })))
    .action((path: string, options: ListOptions) => runList(io, cluster, path, options))

/** Prints the files of all nodes. */
export async function runList(io: Io, cluster: Cluster, path: string, options: ListOptions): Promise<void> {
  if (options.recurse && options.depth !== undefined && options.depth !== 1)
    throw new UsageError('only one of the flags --recurse and --depth can be given at the same time')
  const depth = options.recurse ? -1 : (options.depth ?? 1)
  const request = {
    root: path,
    recurse: depth > 1 || depth < 0,
    recursionDepth: depth,
    types: (options.type ?? []).flatMap(parseTypes),
    reportXattrs: options.long === true,
  }
  const rows: Row[] = []
  const files: object[] = []
  const failures: { node: string; error: Error }[] = []
  let several = false
  const peer = await cluster.peer()
  for await (const file of cluster.stream('machine.MachineService/List', request)) {
    const node = cluster.nodeOf(file, peer)
    if (file.error) {
      failures.push({ node, error: new Error(`error reading file ${file.name}: ${file.error}`) })
      continue
    }
    several ||= Boolean(file.metadata?.hostname)
    if (options.output !== 'table') files.push({ node, ...file, metadata: undefined, mode: modeText(file.mode) })
    rows.push(options.long ? long(io, node, file, options.humanize === true) : [node, file.relativeName])
  }
  if (structured(io, options.output, files)) return failIf(failures)
  if (options.long) io.stdout.write(table([['NODE', 'MODE', 'UID', 'GID', 'SIZE(B)', 'LASTMOD', 'LABEL', 'NAME'], ...rows]))
  else if (several || rows.length === 0) io.stdout.write(table([['NODE', 'NAME'], ...rows]))
  else io.stdout.write(rows.map(([, name]) => `${name}\n`).join(''))
  failIf(failures)
}

/** What could not be read is an error even when the rest could. */
function failIf(failures: readonly { node: string; error: Error }[]): void {
  if (failures.length > 0) throw new NodeErrors(failures)
}

function long(io: Io, node: string, file: machine.FileInfo, human: boolean): Row {
  const label = file.xattrs.find(({ name }) => name === 'security.selinux')
  const name = file.link ? `${file.relativeName} -> ${file.link}` : file.relativeName
  const size = human ? humanSize(file.size) : file.size
  const labelText = label ? Buffer.from(label.data).toString('utf8').replace(/\0+$/, '') : ''
  return [
    node,
    modeText(file.mode),
    file.uid,
    file.gid,
    size,
    human ? ago(io.now(), file.modified) : listTime(io.now(), file.modified),
    labelText,
    name,
  ]
}

const months = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']
const halfYear = 182.5 * 24 * 3600 * 1000

/** A time as lists show it: with the time of day when it is of the last half year, else with the year. */
function listTime(now: Date, seconds: number): string {
  const time = new Date(seconds * 1000)
  const two = (value: number) => String(value).padStart(2, '0')
  const day = `${months[time.getMonth()]} ${String(time.getDate()).padStart(2, ' ')}`
  if (now.getTime() - time.getTime() > halfYear) return `${day} ${time.getFullYear()} ${two(time.getHours())}:${two(time.getMinutes())}`
  return `${day} ${two(time.getHours())}:${two(time.getMinutes())}:${two(time.getSeconds())}`
}

function ago(now: Date, seconds: number): string {
  const passed = Math.floor(now.getTime() / 1000 - seconds)
  const steps: [number, string][] = [
    [365 * 86400, 'year'],
    [30 * 86400, 'month'],
    [7 * 86400, 'week'],
    [86400, 'day'],
    [3600, 'hour'],
    [60, 'minute'],
    [1, 'second'],
  ]
  const [unit, name] = steps.find(([length]) => passed >= length) ?? [1, 'second']
  const count = Math.floor(passed / unit)
  return passed < 1 ? 'now' : `${count} ${name}${count === 1 ? '' : 's'} ago`
}

const types: Record<string, number> = {
  f: wire.ListRequest.Type.REGULAR,
  regular: wire.ListRequest.Type.REGULAR,
  d: wire.ListRequest.Type.DIRECTORY,
  directory: wire.ListRequest.Type.DIRECTORY,
  l: wire.ListRequest.Type.SYMLINK,
  L: wire.ListRequest.Type.SYMLINK,
  symlink: wire.ListRequest.Type.SYMLINK,
}

function parseTypes(text: string): number[] {
  const known = types[text]
  if (known !== undefined) return [known]
  return [...text].map((letter) => {
    const type = types[letter]
    if (type === undefined)
      throw new UsageError(`file type "${text}" is not known: want f (regular file), d (directory) or l (symbolic link)`)
    return type
  })
}
