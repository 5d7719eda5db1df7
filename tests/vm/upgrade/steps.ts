/** Steps that upgrades of machines of every kind have in common: installation, a good release, and the way back from a bad one. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Arch } from '../../../rootfs/build/target.ts'
import type { CommandResult } from '../../support/command-result.ts'
import { dist, forgetState, stateFolder, type TestMachine, talosctl } from '../machine.ts'
import { forgetVariants, makeVariant, type Variant } from '../variants.ts'

const minutes = 60_000
const image = process.env.ICHOR_VM_IMAGE ?? dist

/** A kind of machine. */
export interface UpgradeSubject {
  /** What its state is kept under. */
  readonly name: string
  readonly arch: Arch
  /** Powers it on with the state in a folder, and with a CD in the drive. */
  readonly start: (folder: string, cdrom: string | undefined) => Promise<TestMachine>
}

/** A machine whose steps are remembered, so that a run can go on where an earlier one ended. */
export class UpgradeSteps {
  readonly #subject: UpgradeSubject
  readonly folder: string
  #machine: TestMachine | undefined

  constructor(subject: UpgradeSubject) {
    this.#subject = subject
    this.folder = stateFolder(subject.name)
    beforeAll(async () => {
      await this.powerOn()
      console.log(`console: ${this.path('console.log')}`)
    }, minutes)
    afterAll(async () => {
      await this.machine.unplug()
      forgetState(this.folder)
      forgetVariants()
    })
  }

  get machine(): TestMachine {
    if (!this.#machine) throw new Error('the machine is not on')
    return this.#machine
  }

  /** A file of its state. */
  path(name: string): string {
    return join(this.folder, name)
  }

  done(step: string): boolean {
    return existsSync(this.path(step))
  }

  remember(step: string): void {
    writeFileSync(this.path(step), '')
  }

  async powerOn(): Promise<void> {
    const cdrom = this.done('installed') ? undefined : join(image, `ichor-${this.#subject.arch}.iso`)
    this.#machine = await this.#subject.start(this.folder, cdrom)
  }

  /** The API answers; under emulation that takes its time. */
  answers(): Promise<boolean> {
    return this.machine.until('the API answers', async () => (await this.machine.insecurely('version')).code === 0, 20 * minutes)
  }

  variant(variant: Variant): Promise<string> {
    const { arch } = this.#subject
    return makeVariant(join(image, `ichor-installer-${arch}.tar`), variant, arch)
  }

  /** Sends a release in maintenance and has it written and started. */
  async upgrade(variant: Variant, ...flags: string[]): Promise<CommandResult> {
    const node = ['--nodes', `127.0.0.1:${this.machine.port}`, '--insecure']
    return talosctl(['upgrade', ...node, '--image', await this.variant(variant), ...flags], {}, 40 * minutes)
  }

  /** The plan lists what would be written where, and the installation does it. */
  installs(): void {
    test.skipIf(this.done('installed'))(
      'the plan lists what would be written where, and the installation does it',
      async () => {
        await this.answers()
        const nowhere = await this.machine.insecurely('install', '--plan')
        expect(nowhere.code).toBe(1)
        expect(nowhere.stdout).toContain('/dev/vda')
        const plan = await this.machine.insecurely('install', '--plan', '--disk', '/dev/vda')
        expect(plan.stderr + plan.stdout).toMatch(/partition\s+\/dev\/vda\d META/)
        expect(plan.code).toBe(0)
        const done = await this.machine.insecurely('install', '--disk', '/dev/vda')
        expect(done.stderr).toContain('installed v')
        expect(done.code).toBe(0)
        this.remember('installed')
        await this.machine.unplug()
        await this.powerOn()
        await this.answers()
        expect((await this.machine.insecurely('get', 'systemdisk')).stdout).toMatch(/vda/)
      },
      60 * minutes,
    )
  }

  /** A good release is tried, proves itself and is marked good; its boot loader is renewed then. */
  takes(variant: Variant): void {
    test.skipIf(this.done('good'))(
      'a good release is tried, proves itself and is marked good',
      async () => {
        await this.answers()
        const dry = await this.upgrade(variant, '--dry-run')
        expect(dry.stdout).toMatch(/ok\s+slot\s+B is written, A stays as it is/)
        const upgraded = await this.upgrade(variant, '--timeout', '30m')
        expect(upgraded.stderr).toContain('marked good')
        expect(upgraded.code).toBe(0)
        expect(this.machine.console).toMatch(new RegExp(`release marked good.*version=v\\S+-${variant}`))
        await this.machine.shows(/boot loader renewed/, minutes)
        this.remember('good')
      },
      60 * minutes,
    )
  }

  /** From a release that goes wrong the machine comes back to the one before, and refuses it from then on. */
  comesBack(variant: Variant, sign: RegExp, why: string): void {
    test.skipIf(this.done(variant))(
      `from one that ${variant === 'mute' ? 'is mute' : variant} the machine comes back to the release before it`,
      async () => {
        await this.answers()
        this.machine.forget()
        const begun = await this.upgrade(variant, '--no-wait')
        expect(begun.stderr).toContain('is on trial from the next boot')
        await this.machine.shows(sign, 20 * minutes)
        // Nothing watches a kernel that hangs before it has a watchdog: an operator has to power-cycle the machine.
        for (let again = 0; variant === 'hangs' && again < 3; again++) {
          await this.machine.shows(sign, 20 * minutes)
          await this.machine.unplug()
          await this.powerOn()
        }
        await this.machine.until(
          'the release before it answers',
          async () => (await this.machine.insecurely('get', 'metakeys')).stdout.includes(`-${variant}`),
          40 * minutes,
        )
        const keys = await this.machine.insecurely('get', 'metakeys', '-o', 'yaml')
        expect(keys.stdout).toContain(why)
        const refused = await this.upgrade(variant, '--no-wait')
        expect(refused.stderr).toContain('it failed on this node')
        expect(refused.code).toBe(1)
        this.remember(variant)
      },
      90 * minutes,
    )
  }
}
