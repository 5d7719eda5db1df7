/**
 * A machine without a disk that the image factory starts: the boot loader in its network interface chains to the factory's script for a
 * schematic, fetches kernel and initramfs over HTTP and starts them with the argument of the schematic.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { silent } from '../../../src/cosi/log.ts'
import { Builds } from '../../../src/programs/factory/build/builds.ts'
import { Schematics } from '../../../src/programs/factory/schematics.ts'
import { type ServedFactory, serveFactory } from '../../../src/programs/factory/server.ts'
import { freePort } from '../../support/free-port.ts'
import { dist, forgetState, stateFolder, TestMachine } from '../machine.ts'

const minutes = 60_000
const folder = stateFolder('ipxe')
const scripts = join(folder, 'scripts')
const builds = new Builds()
let factory: ServedFactory | undefined
let machine: TestMachine | undefined

beforeAll(async () => {
  const port = await freePort()
  // The host, as the machine reaches it.
  const externalUrl = `http://10.0.2.2:${port}`
  factory = serveFactory({
    ...{ host: '127.0.0.1', port, images: process.env.ICHOR_VM_IMAGE ?? dist, externalUrl, log: silent },
    ...{ schematics: new Schematics(), workshop: { builds, signers: {}, url: externalUrl } },
  })
  const body = 'customization: {extraKernelArgs: [ichor.story=ipxe]}'
  const { id } = (await (await fetch(`${factory.url}/schematics`, { method: 'POST', body })).json()) as { id: string }
  const [version] = (await (await fetch(`${factory.url}/versions`)).json()) as string[]
  mkdirSync(scripts, { recursive: true })
  writeFileSync(join(scripts, 'boot.ipxe'), `#!ipxe\nchain ${externalUrl}/pxe/${id}/${version}/metal-amd64\n`)
}, minutes)
afterAll(async () => {
  await machine?.unplug()
  await factory?.close()
  builds.close()
  forgetState(folder)
})

test(
  'kernel, initramfs and argument come from the factory, and the machine waits in maintenance',
  async () => {
    const console_ = join(folder, 'console.log')
    console.log(`console: ${console_}`)
    machine = await TestMachine.start({
      ...{ console: console_, memory: 3072, outside: true, pxe: { folder: scripts, file: 'boot.ipxe' } },
    })
    await machine.shows(/Command line: .*ichor\.story=ipxe/, 20 * minutes)
    await machine.shows(/maintenance: waiting for a machine configuration/, 15 * minutes)
    expect(machine.console).not.toMatch(/Kernel panic/)
  },
  36 * minutes,
)
