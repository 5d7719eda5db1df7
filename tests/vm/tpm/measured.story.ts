/**
 * What a signed image specifies about its measurements is what firmware, stub, kernel and stage 0 measure: a small image with the kernel of a
 * release and the parts of stage 0 that measure reports PCR 11.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { existsSync, mkdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { run } from '../../../rootfs/build/run.ts'
import { diskOn } from '../../../src/programs/factory/release/disk-file.ts'
import { makeUki } from '../../../src/programs/factory/release/uki.ts'
import { cpioHeader, cpioPadding, cpioTrailer, cpioTypes } from '../../../src/wire/cpio.ts'
import { peSections } from '../../../src/wire/efi/pe.ts'
import { formatFat } from '../../../src/wire/fat/format.ts'
import { FatVolume } from '../../../src/wire/fat/volume.ts'
import { emptyPolicy, policyPcrDigest } from '../../../src/wire/tpm2/pcr.ts'
import { parsePcrSignatures } from '../../../src/wire/tpm2/pcr-signatures.ts'
import { readIso } from '../../rootfs/read-iso.ts'
import { newPcrKey } from '../../support/measured-image.ts'
import { dist, forgetState, stateFolder, TestMachine, uefi } from '../machine.ts'

const folder = stateFolder('measured')
const path = (name: string) => join(folder, name)
const minutes = 60_000
const stage0 = join(import.meta.dir, '../../../rootfs/stage0')
let machine: TestMachine | undefined
let swtpm: Bun.Subprocess | undefined

/** The first process: it measures as stage 0 and init do, and reports. */
const program = `
#include "stage0.h"
__attribute__((noreturn, used)) static void start(void)
{
	static char value[256], kept[65536];

	make_folder("/dev", 0755), make_folder("/sys", 0755), make_folder("/kept", 0755);
	mount_on("devtmpfs", "/dev", "devtmpfs", 0, 0);
	mount_on("sysfs", "/sys", "sysfs", 0, 0);
	measure("enter-initrd");
	measure("leave-initrd");
	measure("enter-machined");
	keep_policy("/kept");
	if (read_text("/sys/class/tpm/tpm0/pcr-sha256/11", value, sizeof value) <= 0)
		say("no PCR", "", "", "");
	say("PCR 11 is ", value, "", "");
	if (read_text("/kept/tpm2-pcr-signature.json", kept, sizeof kept) > 0 && read_text("/kept/tpm2-pcr-public-key.pem", kept, sizeof kept) > 0)
		say("the policy is kept: ", kept, "", "");
	for (;;)
		pause_for(1000);
}
__asm__(".globl _start\\n_start:\\n\\tcall start\\n");
`

async function initramfs(): Promise<Buffer> {
  writeFileSync(path('first.c'), program)
  const flags = ['-Os', '-static', '-nostdlib', '-ffreestanding', '-fno-stack-protector', '-fno-tree-loop-distribute-patterns']
  const sources = [path('first.c'), join(stage0, 'kernel.c'), join(stage0, 'measure.c')]
  await run(['gcc', ...flags, '-fcf-protection=none', `-I${stage0}`, '-o', path('init'), ...sources])
  const content = readFileSync(path('init'))
  const header = cpioHeader({ name: 'init', mode: cpioTypes.file | 0o755, size: content.length }, 1)
  return Buffer.concat([header, content, cpioPadding(content.length), cpioTrailer()])
}

beforeAll(async () => {
  const image = process.env.ICHOR_VM_IMAGE ?? dist
  const iso = readIso(readFileSync(join(image, 'ichor-amd64.iso')))
  const file = (name: string) => Buffer.from(iso.files.get(`usr/install/amd64/${name}`) ?? [])
  const uki = makeUki({
    ...{ stub: file('systemd-stub.efi'), kernel: file('vmlinuz'), osRelease: 'ID=ichor\n' },
    ...{ commandLine: 'console=ttyS0 panic=-1', initramfs: await initramfs(), pcrKey: newPcrKey() },
  })
  writeFileSync(path('uki.efi'), uki)
  const size = 64 << 20
  writeFileSync(path('disk.img'), '')
  truncateSync(path('disk.img'), size)
  const disk = await open(path('disk.img'), 'r+')
  await formatFat(diskOn(disk, 0, size), { label: 'EFI', serial: 1, hidden: 0 })
  const volume = await FatVolume.open(diskOn(disk, 0, size))
  await volume.mkdirAll('/EFI/BOOT')
  await volume.create('/EFI/BOOT/BOOTX64.EFI', uki)
  await disk.close()
  mkdirSync(path('tpm'), { recursive: true })
  const state = ['--tpmstate', `dir=${path('tpm')}`, '--ctrl', `type=unixio,path=${path('tpm.sock')}`]
  swtpm = Bun.spawn(['swtpm', 'socket', '--tpm2', '--terminate', ...state], { stdout: 'ignore' })
  while (!existsSync(path('tpm.sock'))) await Bun.sleep(20)
  console.log(`console: ${path('console.log')}`)
  machine = await TestMachine.start({
    console: path('console.log'),
    disks: [{ file: path('disk.img'), format: 'raw', bus: 'virtio' }],
    firmware: uefi(folder),
    memory: 1024,
    tpm: path('tpm.sock'),
  })
}, 10 * minutes)
afterAll(async () => {
  await machine?.unplug()
  await swtpm?.exited
  rmSync(path('tpm.sock'), { force: true })
  forgetState(folder)
})

test(
  'the measurements of a start are those that the image is signed for',
  async () => {
    const [, value = ''] = (await machine?.shows(/PCR 11 is ([0-9A-F]{64})/, 30 * minutes)) ?? []
    const uki = readFileSync(path('uki.efi'))
    const section = peSections(uki).find(({ name }) => name === '.pcrsig')
    const { sha256 } = parsePcrSignatures(uki.toString('utf8', section?.offset, (section?.offset ?? 0) + (section?.size ?? 0)))
    const policy = policyPcrDigest(emptyPolicy, { bank: 'sha256', pcrs: [11] }, [Buffer.from(value, 'hex')])
    expect(Buffer.from(policy).toString('hex')).toBe(sha256?.[0]?.pol ?? '')
    await machine?.shows(/the policy is kept: -----BEGIN PUBLIC KEY-----/, minutes)
  },
  31 * minutes,
)
