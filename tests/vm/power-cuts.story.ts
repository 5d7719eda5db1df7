/**
 * The plug is pulled at random moments of installations and upgrades, ICHOR_VM_KILLS times (default: ten). After each the
 * machine is turned on again and must come up by itself, from its disk once it was installed, with a release that is whole.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { appendFileSync, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { disk, dist, forgetState, stateFolder, TestMachine, uefi } from './machine.ts'
import { forgetVariants, makeVariant } from './variants.ts'

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

/** Pulls the plug at a random moment within so many milliseconds of a beginning; the moment is where chance falls, not something that is waited for. */
async function cutWithin(longest: number, began: Promise<unknown>): Promise<number> {
  await began
  const moment = Math.round(Math.random() * longest)
  await Bun.sleep(moment)
  await machine.unplug()
  return moment
}

beforeAll(async () => {
  console.log(`console: ${path('console.log')}`)
})
afterAll(async () => {
  await machine?.unplug()
  forgetState(folder)
  forgetVariants()
})

/** What was measured in milliseconds, and is kept: cuts fall within it. */
const measured = (what: string) => Number(readFileSync(path(what), 'utf8'))
const measure = (what: string, began: number) => writeFileSync(path(what), `${Math.round(performance.now() - began)}\n`)
const noTrial = () =>
  machine.until(
    'no trial is left',
    async () => {
      const keys = await machine.insecurely('get', 'metakeys')
      return keys.code === 0 && !keys.stdout.includes('0x06')
    },
    20 * minutes,
  )

test(
  'a machine is installed, and it is known how long that takes',
  async () => {
    if (existsSync(path('installed'))) return
    await powerOn(true)
    await answers()
    const began = performance.now()
    const done = await machine.insecurely('install', '--disk', '/dev/vda', '--no-reboot')
    expect(done.stderr).toContain('installed v')
    measure('installed', began)
    await machine.unplug()
  },
  60 * minutes,
)

const installCuts = Math.ceil(kills / 3)

test(
  `${installCuts} cuts of installations: from the medium the machine is installed after all`,
  async () => {
    for (let cut = survived(); cut < installCuts; cut++) {
      rmSync(path('disk.img'), { force: true })
      await powerOn(true)
      await answers()
      const installing = machine.insecurely('install', '--disk', '/dev/vda', '--no-reboot')
      const moment = await cutWithin(measured('installed'), machine.shows(/install step=/, 10 * minutes))
      await installing
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

/** Begins an upgrade; nothing is written before the archive is here and is looked at. */
const upgrade = async (to: 'good' | 'unlocked', ...flags: string[]) =>
  machine.insecurely('upgrade', '--image', await makeVariant(installer, to), ...flags)
const looks = () => machine.shows(/upgrade step="checking/, 20 * minutes)

test(
  'it is known how long an upgrade takes, from the first look at the release to the end of its trial',
  async () => {
    if (existsSync(path('upgraded'))) return
    await powerOn(false)
    await answers()
    const upgrading = upgrade('good', '--timeout', '40m')
    await looks()
    const began = performance.now()
    const done = await upgrading
    expect(done.stderr).toContain('marked good')
    measure('upgraded', began)
    await machine.unplug()
  },
  90 * minutes,
)

test(
  `${kills - installCuts} cuts of upgrades: the machine starts from one release or the other, whole`,
  async () => {
    await powerOn(false)
    await answers()
    for (let cut = survived(); cut < kills; cut++) {
      machine.forget()
      const upgrading = upgrade(cut % 2 === 0 ? 'unlocked' : 'good', '--no-wait')
      const moment = await cutWithin(measured('upgraded'), looks())
      await upgrading
      await powerOn(false)
      await answers()
      await noTrial()
      expect(machine.console).not.toMatch(/verity: .* corrupted|Kernel panic|init dies/)
      appendFileSync(path('cuts'), `upgrade ${moment} ms\n`)
    }
    expect(survived()).toBe(kills)
  },
  kills * 45 * minutes,
)
