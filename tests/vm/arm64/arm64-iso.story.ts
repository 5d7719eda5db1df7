/** The ISO for arm64, made by `./mkimage.sh --arch arm64 --only iso`, on an emulated machine with edk2: to maintenance and onto its disk. */
import { afterAll, beforeAll, test } from 'bun:test'
import { copyFileSync, existsSync } from 'node:fs'
import { join } from 'node:path'
import { disk, dist, forgetState, stateFolder, TestMachine } from '../machine.ts'
import { oneNode } from '../one-node.ts'

const folder = stateFolder('arm64')
const minutes = 60_000
const console_ = join(folder, 'console.log')
const system = disk(join(folder, 'system.img'), 12 * 1024)
let machine: TestMachine

/** Arguments of the emulator. The processor is the oldest in use for servers, so that nothing newer is taken for granted. */
function emulator(port: number): string[] {
  const variables = join(folder, 'variables.fd')
  if (!existsSync(variables)) copyFileSync('/usr/share/AAVMF/AAVMF_VARS.fd', variables)
  return [
    ...['qemu-system-aarch64', '-nodefaults', '-no-user-config', '-display', 'none', '-monitor', 'none'],
    ...['-machine', 'virt,gic-version=max', '-accel', 'tcg,thread=multi', '-cpu', 'cortex-a72', '-smp', '2', '-m', '4096'],
    ...['-chardev', `file,id=console,path=${console_},append=on`, '-serial', 'chardev:console'],
    ...['-drive', 'if=pflash,unit=0,format=raw,readonly=on,file=/usr/share/AAVMF/AAVMF_CODE.fd'],
    ...['-drive', `if=pflash,unit=1,format=raw,file=${variables}`, '-device', 'virtio-rng-pci', '-device', 'virtio-scsi-pci,id=scsi'],
    ...['-drive', `if=none,id=system,format=raw,discard=unmap,file=${system.file}`],
    ...['-device', 'virtio-blk-pci,drive=system,bootindex=1'],
    ...['-drive', `if=none,id=cd,media=cdrom,readonly=on,format=raw,file=${join(dist, 'ichor-arm64.iso')}`],
    ...['-device', 'scsi-cd,drive=cd,bus=scsi.0,bootindex=2'],
    ...['-netdev', `user,id=net,restrict=on,hostfwd=tcp:127.0.0.1:${port}-:50000`, '-device', 'virtio-net-pci,netdev=net'],
  ]
}

beforeAll(async () => {
  machine = await TestMachine.start({ console: console_, emulator })
})
afterAll(async () => {
  await machine.unplug()
  forgetState(folder)
})

test(
  'firmware, boot loader, kernel and stage 0 lead to maintenance, and the API answers',
  async () => {
    await machine.shows(/verity: sha256 using implementation "sha256-(ce|arm64)/, 10 * minutes)
    await machine.shows(/service=apid .*"Health check successful"/, 10 * minutes)
    await machine.outputs(() => machine.insecurely('version'), /Server:[\s\S]*linux\/arm64/, 5 * minutes)
    await machine.outputs(() => machine.insecurely('get', 'links'), /enp0s\d+ .* up /, 5 * minutes)
  },
  31 * minutes,
)

test(
  'it is installed and starts from its disk',
  async () => {
    await oneNode(folder, '--install-disk', '/dev/vda')
    await machine.takes(join(folder, 'controlplane.yaml'), 5 * minutes)
    machine.forget()
    await machine.shows(/\[stage0\] root file system \S+ from \/dev\/vda1/, 30 * minutes)
    await machine.shows(/service=machined .*"Health check successful"/, 10 * minutes)
  },
  46 * minutes,
)
