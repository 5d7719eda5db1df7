import { type Capability, capability } from '../../linux/process/capabilities.ts'
import { isLimitedResource, type LimitedResource } from '../../linux/process/rlimit.ts'

const unshared = ['mnt', 'ipc', 'cgroup'] as const
/** A namespace that a process may have of its own. */
export type Unshared = (typeof unshared)[number]

/** What a process should be before its program starts. */
export interface ExecOptions {
  command: string[]
  uid?: number
  gid?: number
  groups?: number[]
  cgroups: string[]
  /** Capabilities to keep; undefined keeps all. */
  keep?: Capability[]
  drop: Capability[]
  noNewPrivileges: boolean
  /** Only the system calls of a service with the capabilities that are kept. */
  filtersSystemCalls: boolean
  /** Namespaces of its own. */
  unshare: Unshared[]
  /** Folders and files that appear empty to the program, and the entries in them that stay visible. */
  hide: string[]
  show: string[]
  /** It sees its own user's processes only. */
  hidesProcesses: boolean
  /** It can write to no file system. */
  readOnly: boolean
  oomScore?: number
  nice?: number
  limits: { resource: LimitedResource; soft: number; hard: number }[]
  env: Record<string, string>
  clearEnv: boolean
  cwd?: string
  umask?: number
  netns?: string
  newSession: boolean
  parentDeathSignal?: NodeJS.Signals
  /** Its domain under the SELinux policy of this system. */
  domain?: string
  statusFd?: number
}

/** A command line that cannot be understood. */
export class ExecUsageError extends Error {
  override readonly name = 'ExecUsageError'
}

/** The output of `exec --help`. */
export const usage = `exec [options] -- program [argument…]: becomes the program, prepared
  --uid N  --gid N  --groups N,N     who it runs as
  --cgroup PATH                      joins this group (may be repeated)
  --caps-keep NAME,NAME | none       drops every other capability permanently
  --caps-drop NAME,NAME              drops these permanently
  --no-new-privs                     nothing it starts gains privileges
  --seccomp                          only the system calls that a service with these capabilities needs
  --unshare mnt,ipc,cgroup           namespaces of its own; these take "mnt":
  --hide PATH  --show PATH           what is empty to it, and what of that is not (may be repeated)
  --hide-processes                   it sees its own user's processes only
  --read-only                        it can write to no file system
  --oom-score N                      -1000 to 1000; clamped and reported where it may not be lowered
  --nice N                           -20 to 19
  --rlimit NAME=SOFT[:HARD]          e.g. nofile=1024:65536; "unlimited" is a number here
  --env NAME=VALUE  --clear-env      adds to, or first empties, the environment
  --cwd PATH  --umask OCTAL          where it starts and what new files deny
  --netns PATH                       its network namespace
  --setsid                           a session of its own
  --parent-death-signal NAME         what it gets when its parent ends
  --selinux-domain NAME              its domain, where the SELinux policy of this system is loaded
  --status-fd N                      reports here instead of standard error`

function integer(name: string, value: string, min: number, max: number): number {
  const number = Number(value)
  if (!/^-?\d+$/.test(value) || number < min || number > max)
    throw new ExecUsageError(`${name} "${value}": give a number from ${min} to ${max}`)
  return number
}

function capabilities(name: string, value: string): Capability[] {
  if (value === 'none' || value === '') return []
  return value.split(',').map((word) => {
    const known = capability(word)
    if (!known) throw new ExecUsageError(`${name} "${word}": there is no such capability`)
    return known
  })
}

function namespaces(value: string): Unshared[] {
  return value.split(',').map((word) => {
    const known = unshared.find((name) => name === word)
    if (!known) throw new ExecUsageError(`--unshare "${word}": give some of ${unshared.join(', ')}`)
    return known
  })
}

function limit(value: string): ExecOptions['limits'][number] {
  const [, resource = '', soft = '', hard = soft] = /^([a-z]+)=(\d+|unlimited)(?::(\d+|unlimited))?$/.exec(value) ?? []
  if (!isLimitedResource(resource)) throw new ExecUsageError(`--rlimit "${value}": give it as nofile=1024:65536`)
  const amount = (text: string) => (text === 'unlimited' ? Number.POSITIVE_INFINITY : Number(text))
  if (amount(soft) > amount(hard)) throw new ExecUsageError(`--rlimit "${value}": the soft limit is above the hard one`)
  return { resource, soft: amount(soft), hard: amount(hard) }
}

const maxId = 0xfffffffe

/** Reads one option into the options; `value` takes its value from the command line. */
type ReadOption = (options: ExecOptions, value: () => string, name: string) => void

const readers = new Map<string, ReadOption>(
  Object.entries<ReadOption>({
    '--uid': (options, value, name) => {
      options.uid = integer(name, value(), 0, maxId)
    },
    '--gid': (options, value, name) => {
      options.gid = integer(name, value(), 0, maxId)
    },
    '--groups': (options, value, name) => {
      const list = value()
      options.groups = list === '' || list === 'none' ? [] : list.split(',').map((group) => integer(name, group, 0, maxId))
    },
    '--cgroup': ({ cgroups }, value) => cgroups.push(value()),
    '--caps-keep': (options, value, name) => {
      options.keep = [...(options.keep ?? []), ...capabilities(name, value())]
    },
    '--caps-drop': ({ drop }, value, name) => drop.push(...capabilities(name, value())),
    '--no-new-privs': (options) => {
      options.noNewPrivileges = true
    },
    '--seccomp': (options) => {
      options.filtersSystemCalls = true
    },
    '--unshare': ({ unshare }, value) => unshare.push(...namespaces(value())),
    '--hide': ({ hide }, value) => hide.push(value()),
    '--show': ({ show }, value) => show.push(value()),
    '--hide-processes': (options) => {
      options.hidesProcesses = true
    },
    '--read-only': (options) => {
      options.readOnly = true
    },
    '--oom-score': (options, value, name) => {
      options.oomScore = integer(name, value(), -1000, 1000)
    },
    '--nice': (options, value, name) => {
      options.nice = integer(name, value(), -20, 19)
    },
    '--rlimit': ({ limits }, value) => limits.push(limit(value())),
    '--env': ({ env }, value) => {
      const [, key, content] = /^([^=\0]+)=(.*)$/s.exec(value()) ?? []
      if (key === undefined || content === undefined) throw new ExecUsageError('--env: give it as NAME=VALUE')
      env[key] = content
    },
    '--clear-env': (options) => {
      options.clearEnv = true
    },
    '--cwd': (options, value) => {
      options.cwd = value()
    },
    '--umask': (options, value) => {
      const mask = value()
      if (!/^[0-7]{1,4}$/.test(mask)) throw new ExecUsageError(`--umask "${mask}": give it in octal, as 027`)
      options.umask = Number.parseInt(mask, 8)
    },
    '--netns': (options, value) => {
      options.netns = value()
    },
    '--setsid': (options) => {
      options.newSession = true
    },
    '--parent-death-signal': (options, value) => {
      const signal = value()
      if (!/^SIG[A-Z0-9]{2,10}$/.test(signal)) throw new ExecUsageError(`--parent-death-signal "${signal}": give it as SIGTERM`)
      options.parentDeathSignal = signal as NodeJS.Signals
    },
    '--selinux-domain': (options, value, name) => {
      const domain = value()
      if (!/^[a-z_]{1,40}_t$/.test(domain)) throw new ExecUsageError(`${name} "${domain}": give it as apid_t`)
      options.domain = domain
    },
    '--status-fd': (options, value, name) => {
      options.statusFd = integer(name, value(), 0, 1 << 20)
    },
  }),
)

/** Reads the command line of exec. */
export function parseExecOptions(args: readonly string[]): ExecOptions {
  const options: ExecOptions = {
    command: [],
    cgroups: [],
    drop: [],
    noNewPrivileges: false,
    filtersSystemCalls: false,
    unshare: [],
    hide: [],
    show: [],
    hidesProcesses: false,
    readOnly: false,
    limits: [],
    env: {},
    clearEnv: false,
    newSession: false,
  }
  const rest = [...args]
  for (let word = rest.shift(); word !== undefined; word = rest.shift()) {
    if (word === '--') {
      options.command = rest
      break
    }
    const equals = word.startsWith('--') ? word.indexOf('=') : -1
    const name = equals < 0 ? word : word.slice(0, equals)
    const value = () => {
      const given = equals < 0 ? rest.shift() : word?.slice(equals + 1)
      if (given === undefined) throw new ExecUsageError(`${name}: its value is missing`)
      return given
    }
    const read = readers.get(name)
    if (!read) throw new ExecUsageError(`unknown option "${name}": see exec --help`)
    read(options, value, name)
  }
  if (options.command.length === 0) throw new ExecUsageError('no program: give it after "--"')
  if (options.filtersSystemCalls && !options.noNewPrivileges) throw new ExecUsageError('--seccomp: give --no-new-privs too')
  const changesMounts = options.hide.length > 0 || options.hidesProcesses || options.readOnly
  if (changesMounts && !options.unshare.includes('mnt'))
    throw new ExecUsageError("--hide, --hide-processes and --read-only would change everyone's mounts: give --unshare mnt too")
  return options
}
