/**
 * `bun bench/boot.ts [--image dist] [--runs 3] [--timeout 900] [--installed FOLDER]`: an emulated machine from power-on to
 * its API in maintenance by the guest's own clock, in turn with busybox on the same kernel, and the memory in use then.
 * `--arm64 FOLDER` instead compares the ISO of dist with that of arm64 in the folder, each with UEFI, in turn.
 * With the state folder of a finished story (`ICHOR_VM_STATE=F bun test ./tests/vm/kubernetes/kube-system.story.ts`) also the memory of its cluster.
 */

import { copyFileSync, mkdtempSync } from 'node:fs'
import { loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { connect } from '../src/rpc/client/channel.ts'
import { arm64Emulator } from '../tests/vm/arm64/emulator.ts'
import { disk, guestTime, TestMachine, talosctl, uefi } from '../tests/vm/machine.ts'
import { busyboxAnswers, busyboxRuns, writeBusyboxInitramfs } from './busybox-initramfs.ts'
import { median } from './median.ts'

const { values } = parseArgs({
  options: {
    image: { type: 'string', default: join(import.meta.dir, '../dist') },
    runs: { type: 'string', default: '3' },
    timeout: { type: 'string', default: '900' },
    installed: { type: 'string' },
    arm64: { type: 'string' },
  },
})
const deadline = Number(values.timeout) * 1000
const folder = mkdtempSync(join(tmpdir(), 'ichor-boot-'))

type Steps = readonly [name: string, line: RegExp][]

const ours: Steps = [
  ['kernel hands over to stage 0', /Run \/init as init process/],
  ['root is verified and mounted', /\[stage0\] root file system/],
  ['init runs', /Ichor v\d/],
  ['containerd answers', /service=containerd .*Health check successful/],
  ['devices are named', /service=udevd .*Health check successful/],
  ['the address is known', /maintenance: waiting .*addresses=\d/],
  ['API answers', /service=apid .*Health check successful/],
]
const busybox: Steps = [
  ['kernel hands over to busybox', /Run \/init as init process/],
  ['busybox runs', busyboxRuns],
  ['busybox answers', busyboxAnswers],
]

type Start = (console: string) => Promise<TestMachine>
const handedOver =
  (image: string): Start =>
  (console) =>
    TestMachine.start({ image, console })

/** Seconds after power-on at which each step was done. */
async function timed(name: string, start: Start, steps: Steps, after: (machine: TestMachine) => Promise<void> = async () => {}) {
  const machine = await start(join(folder, `${name}.log`))
  try {
    for (const [, line] of steps) await machine.shows(line, deadline)
    await after(machine)
    return steps.map(([, line]) => guestTime(machine.console, line) ?? Number.NaN)
  } finally {
    await machine.unplug()
  }
}

const mebibytes = (kibibytes: number | bigint) => Math.round(Number(kibibytes) / 1024)

/** Memory a machine has in use: all there is without what is free or could be at once. */
async function memoryOf(port: number): Promise<number> {
  const channel = connect({ address: `127.0.0.1:${port}`, tls: { insecure: true } })
  try {
    const { messages } = await channel.unary('machine.MachineService/Memory', {}, { deadline: 120_000 })
    const { memtotal = 0, memavailable = 0 } = messages[0]?.meminfo ?? {}
    return mebibytes(Number(memtotal) - Number(memavailable))
  } finally {
    channel.close()
  }
}

const show = (name: string, value: number) => console.log(`${name.padEnd(32)} ${value.toFixed(1).padStart(6)} s`)
const last = (steps: number[][]) => median(steps.map((each) => each.at(-1) ?? Number.NaN))

if (values.arm64 !== undefined) {
  await compareArchitectures(values.arm64)
  process.exit()
}

/** Both ISOs with UEFI and as much memory. */
async function compareArchitectures(arm64: string): Promise<void> {
  const memory = 2048
  const steps = ours
  const empty = () => mkdtempSync(join(folder, 'machine-'))
  const emulated =
    (cdrom: string): Start =>
    (console) => {
      const folder = empty()
      const { file } = disk(join(folder, 'disk.img'), 64)
      return TestMachine.start({ console, emulator: arm64Emulator({ folder, console, disk: file, cdrom, memory }) })
    }
  const usual =
    (cdrom: string): Start =>
    (console) =>
      TestMachine.start({ console, cdrom, memory, firmware: uefi(empty()) })
  const starts = { amd64: usual(join(values.image, 'ichor-amd64.iso')), arm64: emulated(join(arm64, 'ichor-arm64.iso')) } as const
  const seen: { amd64: number[][]; arm64: number[][] } = { amd64: [], arm64: [] }
  for (let run = 1; run <= Number(values.runs); run++)
    for (const arch of ['amd64', 'arm64'] as const) {
      seen[arch].push(await timed(`${arch}-${run}`, starts[arch], steps))
      console.error(`run ${run}: ${arch} ${seen[arch].at(-1)?.at(-1)} s, load ${loadavg()[0]?.toFixed(1)}`)
    }
  console.log(`guest time under emulation, median of ${values.runs}, load ${loadavg()[0]?.toFixed(1)}; consoles in ${folder}`)
  for (const arch of ['amd64', 'arm64'] as const) {
    console.log(arch)
    for (const [at, [step]] of steps.entries()) show(step, median(seen[arch].map((each) => each[at] ?? Number.NaN)))
  }
  console.log(`${'arm64 to amd64'.padEnd(32)} ${(last(seen.arm64) / last(seen.amd64)).toFixed(2).padStart(6)}`)
}

const other = join(folder, 'busybox')
await Bun.$`mkdir -p ${other}`.quiet()
for (const name of ['ichor-vmlinuz', 'ichor-cmdline']) copyFileSync(join(values.image, name), join(other, name))
await writeBusyboxInitramfs(join(other, 'ichor-initramfs'))

const times: { ours: number[][]; busybox: number[][] } = { ours: [], busybox: [] }
const memory: number[] = []
for (let run = 1; run <= Number(values.runs); run++) {
  times.busybox.push(await timed(`busybox-${run}`, handedOver(other), busybox))
  times.ours.push(await timed(`ours-${run}`, handedOver(values.image), ours, async ({ port }) => void memory.push(await memoryOf(port))))
  console.error(`run ${run}: ${times.ours.at(-1)?.at(-1)} s, busybox ${times.busybox.at(-1)?.at(-1)} s, load ${loadavg()[0]?.toFixed(1)}`)
}
console.log(`guest time under emulation, median of ${values.runs}, load ${loadavg()[0]?.toFixed(1)}; consoles in ${folder}`)
for (const [name, steps] of [
  ['busybox', busybox],
  ['ours', ours],
] as const)
  for (const [at, [step]] of steps.entries()) show(step, median(times[name].map((each) => each[at] ?? Number.NaN)))
show('above busybox', last(times.ours) - last(times.busybox))
console.log(`${'ratio'.padEnd(32)} ${(last(times.ours) / last(times.busybox)).toFixed(2).padStart(6)}`)
console.log(`${'memory in use in maintenance'.padEnd(32)} ${String(median(memory)).padStart(6)} MiB`)

const { installed } = values
if (installed) {
  const at = (name: string) => join(installed, name)
  const machine = await TestMachine.start({
    console: join(folder, 'installed.log'),
    disks: [disk(at('disk.img'), 12 * 1024)],
    firmware: uefi(installed),
    memory: 4096,
    restarts: true,
  })
  const admin = (...args: string[]) =>
    talosctl(['--talosconfig', at('talosconfig'), '--endpoints', `127.0.0.1:${machine.port}`, '--nodes', '127.0.0.1', ...args])
  try {
    await machine.until('the node is ready', async () => /running\s+true/.test((await admin('get', 'machinestatus')).stdout), 60 * 60_000)
    const { stdout } = await admin('memory')
    console.log(`memory of the control plane, all of kube-system running:\n${stdout}`)
  } finally {
    await machine.unplug()
  }
}
