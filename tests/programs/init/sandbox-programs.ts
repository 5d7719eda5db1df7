/** Programs in a test: daemons run until they are stopped, tools finish immediately. Each can fail to start, or exit with an error. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Child, ExitStatus, Spawn } from '../../../src/supervise/spawn.ts'
import type { Hardware } from './sandbox-hardware.ts'
import type { Fault } from './sandbox-kernel.ts'

const daemons = new Set(['containerd', 'apid', 'trustd', 'dashboard', 'systemd-udevd'])
const nothing = () => new Blob([]).stream()
let pids = 2 ** 22

/** Starts programs; `fault` is called for `spawn NAME`, and for `exit NAME` of one that started. */
export function sandboxPrograms(root: string, fault: Fault, hardware?: Hardware): Spawn {
  return ({ argv }) => {
    const [path = '', ...args] = argv[0] === '/usr/bin/exec' ? argv.slice(argv.indexOf('--') + 1) : argv
    const name = path.split('/').at(-1) ?? ''
    const refused = fault(`spawn ${name}`)
    if (refused) throw refused
    const { promise: exited, resolve } = Promise.withResolvers<ExitStatus>()
    const child: Child = {
      pid: pids++,
      output: [nothing(), nothing()],
      exited,
      kill: (signal) => resolve({ code: null, signal }),
    }
    if (fault(`exit ${name}`)) resolve({ code: 1, signal: null })
    else if (daemons.has(name)) begin(root, name)
    else
      work(name, args, hardware).then(
        () => resolve({ code: 0, signal: null }),
        () => resolve({ code: 1, signal: null }),
      )
    return child
  }
}

/** What others look for of a daemon that runs. */
function begin(root: string, name: string): void {
  if (name !== 'systemd-udevd') return
  mkdirSync(join(root, 'run/udev'), { recursive: true })
  writeFileSync(join(root, 'run/udev/control'), '')
}

async function work(name: string, args: readonly string[], hardware?: Hardware): Promise<void> {
  if (name === 'mkfs.xfs') await hardware?.makeXfs(args.at(-1) ?? '', args[args.indexOf('-L') + 1] ?? '')
}
