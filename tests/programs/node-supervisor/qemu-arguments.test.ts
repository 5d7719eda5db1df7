import { expect, test } from 'bun:test'
import { qemuArguments, type VirtualMachine } from '../../../src/programs/node-supervisor/machine/qemu-arguments.ts'

const plain: VirtualMachine = {
  name: 'a',
  cpus: 2,
  memory: 2048,
  accelerator: 'tcg',
  firmware: { kind: 'bios' },
  disks: [],
  networks: [],
  console: '/c',
  restarts: true,
}

/** Values of an option, in order. */
const values = (machine: Partial<VirtualMachine>, option: string) => {
  const all = qemuArguments({ ...plain, ...machine })
  return all.filter((_, index) => all[index - 1] === option)
}

test('a machine without help of the hardware has every feature of the emulated processor', () => {
  expect(values({}, '-accel')).toEqual(['tcg,thread=multi'])
  expect(values({}, '-cpu')).toEqual(['max,vendor=GenuineIntel,family=6,model=28,stepping=10'])
  expect(values({ accelerator: 'kvm' }, '-cpu')).toEqual(['host'])
})

test('disks start in their order, before the CD', () => {
  const disks = [
    { file: '/1', format: 'raw', bus: 'virtio', serial: 'one' },
    { file: '/2', format: 'qcow2', bus: 'nvme' },
    { file: '/3', format: 'raw', bus: 'scsi' },
  ] as const
  const devices = values({ disks, cdrom: '/cd.iso' }, '-device')
  expect(devices.filter((each) => each.includes('bootindex'))).toEqual([
    'virtio-blk-pci,drive=disk0,serial=one,bootindex=1',
    'nvme,drive=disk1,serial=nvme1,bootindex=2',
    'scsi-hd,drive=disk2,bus=scsi.0,bootindex=3',
    'ide-cd,drive=cd,bus=ide.5,bootindex=20',
  ])
  expect(devices).toContain('virtio-scsi-pci,id=scsi')
})

test('an adapter comes before the disks that hang on it', () => {
  const disks = (['ahci', 'megaraid', 'scsi'] as const).map((bus) => ({ file: `/${bus}`, format: 'raw' as const, bus }))
  const devices = values({ disks }, '-device')
  for (const [adapter, disk] of [
    ['id=ahci', 'bus=ahci.0'],
    ['id=megaraid', 'bus=megaraid.0'],
    ['id=scsi', 'bus=scsi.0'],
  ] as const)
    expect(devices.findIndex((each) => each.includes(adapter))).toBeLessThan(devices.findIndex((each) => each.includes(disk)))
})

test('a comma in a path does not end it', () => {
  expect(values({ console: '/a,b' }, '-chardev')).toEqual(['file,id=console,path=/a,,b,append=on'])
})

test('a TPM is reached through its control socket', () => {
  expect(values({ tpm: '/a,b.sock' }, '-chardev')).toContain('socket,id=tpm-control,path=/a,,b.sock')
  expect(values({ tpm: '/s' }, '-tpmdev')).toEqual(['emulator,id=tpm,chardev=tpm-control'])
  expect(values({ tpm: '/s' }, '-device')).toContain('tpm-tis,tpmdev=tpm')
  expect(values({}, '-tpmdev')).toEqual([])
})

test('a guest agent is called through a socket of the host', () => {
  expect(values({ agent: '/a,b.sock' }, '-chardev')).toContain('socket,id=agent,path=/a,,b.sock,server=on,wait=off')
  expect(values({ agent: '/s' }, '-device')).toContain('virtserialport,chardev=agent,name=org.qemu.guest_agent.0')
  expect(values({}, '-device')).not.toContain('virtio-serial-pci')
})

test('Secure Boot keeps its variables from the guest', () => {
  const firmware = { kind: 'uefi', code: '/code', variables: '/variables', secure: true } as const
  expect(values({ firmware }, '-machine')).toEqual(['q35,smm=on'])
  expect(values({ firmware }, '-drive')[1]).toBe('if=pflash,unit=1,format=raw,file=/variables')
})

test('the second of two disks on one adapter gets the next place', () => {
  const disks = ['/1', '/2'].map((file) => ({ file, format: 'raw' as const, bus: 'megaraid' as const }))
  expect(values({ disks }, '-device').filter((each) => each.startsWith('scsi-hd'))).toEqual([
    'scsi-hd,drive=disk0,bus=megaraid.0,scsi-id=0,bootindex=1',
    'scsi-hd,drive=disk1,bus=megaraid.0,scsi-id=1,bootindex=2',
  ])
})
