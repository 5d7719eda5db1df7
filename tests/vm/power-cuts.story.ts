/**
 * The plug is pulled at random moments of installations and upgrades, ICHOR_VM_KILLS times (ten unless told). After each the
 * machine is turned on again and must come up by itself, from its disk once it was installed, with a release that is whole.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { appendFileSync, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { disk, dist, forgetState, stateFolder, TestMachine, uefi } from './machine.ts'
import { makeVariant } from './variants.ts'

const minutes = 60_000
const kills = Number(process.env.ICHOR_VM_KILLS ?? 10)
const image = process.env.ICHOR_VM_IMAGE ?? dist
const installer = join(image, 'ichor-installer-amd64.tar')
const folder = stateFolder('power-cuts')
const path = (name: string) => join(folder, name)
/** A line for every cut that was survived. */
const survived = () => (existsSync(path('cuts')) ? readFileSync(path('cuts'), 'utf8').trim().split('\n').length : 0)
let machine: TestMachine

const powerOn = async (fromMedium: boolean) => {
  machine = await TestMachine.start({
    console: path('console.log'),
    cdrom: fromMedium ? join(image, 'ichor-amd64.iso') : undefined,
    disks: [disk(path('disk.img'), 8 * 1024)],
    firmware: uefi(folder),
    memory: 2048,
    restarts: true,
  })
}
const answers = () => machine.until('the API answers', async () => (await machine.insecurely('version')).code === 0, 20 * minutes)

/** Pulls the plug at a moment within the work; the moment is where chance falls, not something that is waited for. */
async function cutDuring(work: () => Promise<unknown>, longest: number): Promise<number> {
  const moment = Math.round(Math.random() * longest)
  const working = work().catch(() => {})
  await Promise.race([working, new Promise((resolve) => setTimeout(resolve, moment))])
  await machine.unplug()
  await working
  return moment
}

beforeAll(async () => {
  console.log(`console: ${path('console.log')}`)
})
afterAll(async () => {
  await machine?.unplug()
  forgetState(folder)
})

/** How long an installation and an upgrade take here, in milliseconds: cuts fall within it. */
let installation = 60_000
let upgrading = 120_000

test(
  'a machine is installed, and it is known how long that takes',
  async () => {
    if (existsSync(path('installed'))) return
    await powerOn(true)
    await answers()
    const began = performance.now()
    const done = await machine.insecurely('install', '--disk', '/dev/vda', '--no-reboot')
    expect(done.stderr).toContain('installed v')
    installation = performance.now() - began
    await machine.unplug()
    writeFileSync(path('installed'), `${Math.round(installation)}\n`)
  },
  60 * minutes,
)

const installCuts = Math.ceil(kills / 3)

test(
  `${installCuts} cuts of installations: from the medium the machine is installed after all`,
  async () => {
    installation = Number(readFileSync(path('installed'), 'utf8'))
    for (let cut = survived(); cut < installCuts; cut++) {
      rmSync(path('disk.img'), { force: true })
      await powerOn(true)
      await answers()
      const moment = await cutDuring(() => machine.insecurely('install', '--disk', '/dev/vda', '--no-reboot'), installation)
      await powerOn(true)
      await answers()
      const done = await machine.insecurely('install', '--disk', '/dev/vda', '--no-reboot', '--wipe')
      // A cut after the last write left a machine that is installed: it started from its disk.
      expect(done.code === 0 || done.stderr.includes('installed already')).toBe(true)
      await machine.unplug()
      appendFileSync(path('cuts'), `installation ${moment} ms\n`)
    }
  },
  installCuts * 30 * minutes,
)

test(
  `${kills - installCuts} cuts of upgrades: the machine starts from one release or the other, whole`,
  async () => {
    const archive = await makeVariant(installer, folder, 'good')
    await powerOn(false)
    await answers()
    for (let cut = survived(); cut < kills; cut++) {
      const began = performance.now()
      const moment = await cutDuring(() => machine.insecurely('upgrade', '--image', archive, '--no-wait'), upgrading)
      if (performance.now() - began < moment) upgrading = performance.now() - began
      await powerOn(false)
      await answers()
      await machine.until(
        'no trial is left',
        async () => {
          const keys = await machine.insecurely('get', 'metakeys')
          return keys.code === 0 && !keys.stdout.includes('0x06')
        },
        20 * minutes,
      )
      expect(machine.console).not.toMatch(/corrupted|Kernel panic|init dies/)
      appendFileSync(path('cuts'), `upgrade ${moment} ms\n`)
    }
    expect(survived()).toBe(kills)
  },
  kills * 45 * minutes,
)
