/**
 * What a signed image specifies about its measurements is what firmware, stub, kernel and stage 0 measure: a small image with the kernel of a
 * release and the parts of stage 0 that measure reports its PCRs and the event log of the firmware, which explains them.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { hash } from 'node:crypto'
import { readFileSync, truncateSync, writeFileSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { run } from '../../../rootfs/build/run.ts'
import { diskOn } from '../../../src/programs/factory/release/disk-file.ts'
import { makeUki } from '../../../src/programs/factory/release/uki.ts'
import { cpioHeader, cpioPadding, cpioTrailer, cpioTypes } from '../../../src/wire/cpio.ts'
import { peSections } from '../../../src/wire/efi/pe.ts'
import { formatFat } from '../../../src/wire/fat/format.ts'
import { FatVolume } from '../../../src/wire/fat/volume.ts'
import { type BankHash, bankHashes } from '../../../src/wire/tpm2/constants.ts'
import { extended, parseEventLog, replay } from '../../../src/wire/tpm2/event-log.ts'
import { eventDescriber } from '../../../src/wire/tpm2/event-text.ts'
import { parseImaLog } from '../../../src/wire/tpm2/ima-log.ts'
import { emptyPolicy, policyPcrDigest } from '../../../src/wire/tpm2/pcr.ts'
import { parsePcrSignatures } from '../../../src/wire/tpm2/pcr-signatures.ts'
import { readIso } from '../../rootfs/read-iso.ts'
import { newPcrKey } from '../../support/measured-image.ts'
import { machineTpm } from '../../support/swtpm.ts'
import { dist, forgetState, stateFolder, TestMachine, uefi } from '../machine.ts'

const folder = stateFolder('measured')
const path = (name: string) => join(folder, name)
const minutes = 60_000
/** Under emulation on a busy host the kernel's check of its timer can fail. */
const commandLine = 'console=ttyS0 panic=-1 no_timer_check'
const stage0 = join(import.meta.dir, '../../../rootfs/stage0')
let machine: TestMachine | undefined
let tpm: Awaited<ReturnType<typeof machineTpm>> | undefined

/** The first process: it measures as stage 0 and init do, and reports that, with the event log of the firmware and the values of all PCRs. */
const program = `
#include "stage0.h"

#define SYSLOG_CONSOLE_OFF 6 /* syslog(2) */

static const char digits[] = "0123456789abcdef";

/* A line of its own on the serial console: the kernel limits how many lines a program logs. */
static void dump(long console, const char *name, const char *bytes, long length)
{
	static char line[256];

	for (long at = 0; at < length; at += 64) {
		word used = length_of(name);

		memcpy(line, name, used);
		for (long n = at; n < at + 64 && n < length; n++) {
			line[used++] = digits[(unsigned char)bytes[n] >> 4];
			line[used++] = digits[bytes[n] & 15];
		}
		memcpy(line + used, ";\\n", 2);
		call(__NR_write, console, (long)line, used + 2, 0, 0);
	}
}

__attribute__((noreturn, used)) static void start(void)
{
	static char value[256], kept[65536], events[262144];
	long console, length;

	make_folder("/dev", 0755), make_folder("/sys", 0755), make_folder("/kept", 0755);
	mount_on("devtmpfs", "/dev", "devtmpfs", 0, 0);
	mount_on("sysfs", "/sys", "sysfs", 0, 0);
	mount_on("securityfs", "/sys/kernel/security", "securityfs", 0, 0);
	measure("enter-initrd");
	measure("leave-initrd");
	measure("enter-machined");
	keep_policy("/kept");
	if (read_text("/sys/class/tpm/tpm0/pcr-sha256/11", value, sizeof value) <= 0)
		say("no PCR", "", "", "");
	say("PCR 11 is ", value, "", "");
	if (read_text("/kept/tpm2-pcr-signature.json", kept, sizeof kept) > 0 && read_text("/kept/tpm2-pcr-public-key.pem", kept, sizeof kept) > 0)
		say("the policy is kept: ", kept, "", "");
	/* Lines of the kernel would come between those of the dump. */
	call(__NR_syslog, SYSLOG_CONSOLE_OFF, 0, 0, 0, 0);
	console = open_file("/dev/console", O_WRONLY | O_NOCTTY | O_CLOEXEC);
	length = read_text("/sys/kernel/security/tpm0/binary_bios_measurements", events, sizeof events);
	dump(console, "events ", events, length);
	length = read_text("/sys/kernel/security/ima/binary_runtime_measurements", events, sizeof events);
	dump(console, "kernel ", events, length);
	for (int n = 0; n < 24; n++) {
		struct text file = { .length = 0 };

		add(&file, "/sys/class/tpm/tpm0/pcr-sha256/");
		add_number(&file, n);
		length = read_text(file.at, value, sizeof value);
		dump(console, "value ", value, length > 64 ? 64 : length);
	}
	dump(console, "end ", "", 1);
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
    ...{ commandLine, initramfs: await initramfs(), pcrKey: newPcrKey() },
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
  tpm = await machineTpm(folder)
  console.log(`console: ${path('console.log')}`)
  machine = await TestMachine.start({
    console: path('console.log'),
    disks: [{ file: path('disk.img'), format: 'raw', bus: 'virtio' }],
    firmware: uefi(folder),
    memory: 1024,
    tpm: tpm.socket,
  })
}, 10 * minutes)
afterAll(async () => {
  await machine?.unplug()
  await tpm?.stop()
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

/** What a program dumps on the console in lines of hexadecimal digits, one entry a line. */
const dumped = (name: string) =>
  [...(machine?.console.matchAll(new RegExp(`${name} ([0-9a-f]+);`, 'g')) ?? [])].map(([, hex = '']) => Buffer.from(hex, 'hex'))

test(
  'the event log of the firmware gives the PCRs of the TPM, and what tpm2_eventlog makes of it',
  async () => {
    await machine?.shows(/end 00;/, 5 * minutes)
    const log = Buffer.concat(dumped('events'))
    const events = parseEventLog(log)
    const replayed = replay(events, 'sha256')
    for (const word of ['enter-initrd', 'leave-initrd', 'enter-machined'])
      replayed.set(11, extended('sha256', replayed.get(11) ?? new Uint8Array(32), hash('sha256', word, 'buffer')))
    const kernel = parseImaLog(Buffer.concat(dumped('kernel')))
    expect(kernel.map(({ pcr, subject }) => `${pcr} ${subject}`)).toContain('10 boot_aggregate')
    for (const { pcr, digest } of kernel) replayed.set(pcr, extended('sha256', replayed.get(pcr) ?? new Uint8Array(32), digest('sha256')))
    const hex = (value: Uint8Array = new Uint8Array()) => Buffer.from(value).toString('hex')
    const values = dumped('value').map((value) => value.toString('latin1').toLowerCase())
    expect(values).toHaveLength(24)
    // Those of a launch at run time begin with ones.
    const unused = (pcr: number) => (pcr >= 17 && pcr <= 22 ? 'ff' : '00').repeat(32)
    expect(values.map((value, pcr) => [pcr, value])).toEqual(values.map((_, pcr) => [pcr, hex(replayed.get(pcr)) || unused(pcr)]))
    const describeEvent = eventDescriber(commandLine)
    const lines = events.map((event) => `${event.pcr} ${Object.values(describeEvent(event)).join(': ')}`)
    expect(lines).toContain(`11 section .cmdline: ${commandLine}`)
    expect(lines).toContain(`9 LOADED_IMAGE::LoadOptions: ${commandLine}`)
    writeFileSync(path('events'), log)
    const judged = (await run(['tpm2_eventlog', path('events')])).split('\npcrs:\n')[1] ?? ''
    const own = (Object.keys(bankHashes) as BankHash[]).map((bank) => {
      const pcrs = [...replay(events, bank)]
        .sort(([a], [b]) => a - b)
        .map(([pcr, value]) => `    ${String(pcr).padEnd(3)}: 0x${hex(value)}\n`)
      return `  ${bank}:\n${pcrs.join('')}`
    })
    expect(judged.trimEnd()).toBe(own.join('').trimEnd())
  },
  6 * minutes,
)
