/**
 * Secure Boot: a machine in setup mode takes the keys that come with the medium, starts only what they signed from then on,
 * and refuses a kernel image that was changed afterwards.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { closeSync, copyFileSync, openSync, readFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { prepareHost } from '../../rootfs/build/host.ts'
import { run } from '../../rootfs/build/run.ts'
import { peSections } from '../../src/wire/efi/pe.ts'
import { readIso } from '../rootfs/read-iso.ts'
import { forgetState, stateFolder, TestMachine, uefi } from './machine.ts'

const folder = stateFolder('secure-boot')
const path = (name: string) => join(folder, name)
const minutes = 60_000
let machine: TestMachine | undefined

beforeAll(async () => {
  await prepareHost([
    { name: 'sbsigntool', why: 'signs for Secure Boot', shown: '/usr/bin/sbsign' },
    { name: 'openssl', why: 'makes keys and certificates', shown: '/usr/bin/openssl' },
  ])
  const subject = ['-subj', '/CN=Ichor test', '-days', '3650', '-keyout', path('sb.key'), '-out', path('sb.crt')]
  await run(['openssl', 'req', '-new', '-x509', '-newkey', 'rsa:2048', '-nodes', '-sha256', ...subject])
  const keys = ['--secure-boot-key', path('sb.key'), '--secure-boot-cert', path('sb.crt'), '--sd-boot-enroll-keys', 'force']
  const kernel = process.env.ICHOR_VM_KERNEL ? ['--kernel', process.env.ICHOR_VM_KERNEL] : []
  const products = ['--fast', '--only', 'iso', '--output', folder]
  await run([process.execPath, join(import.meta.dir, '../../rootfs/image.ts'), ...products, ...kernel, ...keys])
}, 60 * minutes)
afterAll(async () => {
  await machine?.unplug()
  forgetState(folder)
})

const start = async (name: string, cdrom: string) => {
  console.log(`console: ${path(`${name}.log`)}`)
  machine = await TestMachine.start({ console: path(`${name}.log`), cdrom: path(cdrom), firmware: uefi(folder, true), restarts: true })
  return machine
}

test(
  'boot loader and kernel image are signed with the key that was given',
  async () => {
    const { files } = readIso(readFileSync(path('ichor-amd64.iso')))
    for (const name of ['vmlinuz.efi', 'systemd-boot.efi']) {
      await Bun.write(path(name), files.get(`usr/install/amd64/${name}`)!)
      expect(await run(['sbverify', '--cert', path('sb.crt'), path(name)])).toContain('Signature verification OK')
    }
  },
  5 * minutes,
)

test(
  'a machine in setup mode enrolls the keys and restarts; then it starts with Secure Boot',
  async () => {
    const it = await start('enrolled', 'ichor-amd64.iso')
    await it.shows(/\[stage0\] root file system/, 30 * minutes)
    await it.shows(/[Ss]ecure [Bb]oot( is)? enabled/, 5 * minutes)
    await it.shows(/addresses=10\.0\.2\.15 port=50000/, 20 * minutes)
    const state = await it.until(
      'the API answers',
      async () => {
        const { code, stdout, stderr } = await it.insecurely('get', 'securitystate', '-o', 'yaml')
        if (code !== 0) throw new Error(stderr)
        return stdout !== '' && stdout
      },
      10 * minutes,
    )
    expect(state).toMatch(/secureBoot: true/)
    await it.unplug()
  },
  66 * minutes,
)

test(
  'a kernel image that was changed afterwards is not started',
  async () => {
    const image = readFileSync(path('ichor-amd64.iso'))
    const uki = readIso(image).files.get('usr/install/amd64/vmlinuz.efi')!
    const line = peSections(uki).find(({ name }) => name === '.cmdline')!
    copyFileSync(path('ichor-amd64.iso'), path('changed.iso'))
    const file = openSync(path('changed.iso'), 'r+')
    const changed = Buffer.from('x')
    writeSync(file, changed, 0, changed.length, uki.byteOffset - image.byteOffset + line.offset)
    closeSync(file)
    const it = await start('changed', 'changed.iso')
    await it.shows(/(Error loading|Security [Vv]iolation|Access [Dd]enied|Secure Boot violation)/i, 30 * minutes)
    expect(it.console).not.toContain('[stage0]')
  },
  31 * minutes,
)
