/** A description of a virtual machine, and the QEMU arguments that implement it. */

/** How a disk is attached; the names are those of `--disks`. */
export type DiskBus = 'virtio' | 'ide' | 'ahci' | 'scsi' | 'nvme' | 'megaraid' | 'usb'

/** Every way of attaching a disk. */
export const diskBuses: readonly DiskBus[] = ['virtio', 'ide', 'ahci', 'scsi', 'nvme', 'megaraid', 'usb']

/** A disk of a machine. */
export interface MachineDisk {
  file: string
  format: 'raw' | 'qcow2'
  bus: DiskBus
  /** At most 20 characters. */
  serial?: string | undefined
  readOnly?: boolean
  /** Bytes of its sectors, 512 where it does not matter; disks on the buses of SATA have no others. */
  sectorSize?: number
}

/** What starts the machine. */
export type Firmware =
  | { kind: 'bios' }
  | {
      kind: 'uefi'
      /** The firmware's code, never written. */
      code: string
      /** The machine's own copy of the firmware's variables. */
      variables: string
      /** Only signed programs are started once keys are enrolled. */
      secure: boolean
    }

/** A network interface. */
export type MachineNetwork =
  | {
      kind: 'user'
      forwards: readonly { hostPort: number; port: number }[]
      outside: boolean
      pxe?: { folder: string; file: string } | undefined
    }
  /** A link of the host, made before. */
  | { kind: 'tap'; link: string; hardwareAddress: string; mtu: number }
  /** A cable between two machines: one listens at the path, the other connects. */
  | { kind: 'cable'; path: string; listens: boolean; hardwareAddress: string }

/** One virtual machine. */
export interface VirtualMachine {
  name: string
  cpus: number
  /** Mebibytes. */
  memory: number
  accelerator: 'kvm' | 'tcg'
  firmware: Firmware
  disks: readonly MachineDisk[]
  /** An image in the CD drive. */
  cdrom?: string | undefined
  /** A kernel handed over by the emulator instead of read from a disk. */
  kernel?: { kernel: string; initramfs: string; commandLine: string } | undefined
  networks: readonly MachineNetwork[]
  /** The serial line's file, in which what is there is kept; without one it is the emulator's own output. */
  console?: string
  /** A socket that takes QMP commands. */
  control?: string | undefined
  /** Has an i6300esb, which resets the machine. */
  watchdog?: boolean | undefined
  /** The control socket of a TPM in software (`swtpm socket --tpm2 --ctrl type=unixio,path=…`). */
  tpm?: string | undefined
  /** The socket of its guest agent, on which the host listens. */
  agent?: string | undefined
  /** Whether a restart of the guest is carried out; otherwise it ends the emulator. */
  restarts: boolean
  /** SMBIOS serial number and the like, `type=1,serial=…`. */
  smbios?: readonly string[] | undefined
  /** The machine's UUID; a random one is QEMU's zeros, which many machines would share. */
  uuid?: string | undefined
}

/**
 * The processor of an emulated machine: everything that the emulator knows, under the name of an Atom (Bonnell). Linux reads the
 * time from the TSC of several processors only where the vendor keeps them in step, which it takes Intel's word for; elsewhere it
 * reads the HPET, which an emulator makes slow. And an Atom speculates nothing, so that no mitigation slows down system calls.
 */
const emulatedProcessor = 'max,vendor=GenuineIntel,family=6,model=28,stepping=10'

/** Arguments of qemu-system-x86_64 for a machine. */
export function qemuArguments(machine: VirtualMachine): string[] {
  const secure = machine.firmware.kind === 'uefi' && machine.firmware.secure
  return [
    ...['-name', machine.name, '-nodefaults', '-no-user-config', '-display', 'none'],
    // Secure Boot's variables are written in system management mode only, so that the guest's kernel cannot forge them.
    ...['-machine', secure ? 'q35,smm=on' : 'q35', ...(secure ? ['-global', 'driver=cfi.pflash01,property=secure,value=on'] : [])],
    ...(machine.accelerator === 'kvm' ? ['-accel', 'kvm', '-cpu', 'host'] : ['-accel', 'tcg,thread=multi', '-cpu', emulatedProcessor]),
    ...['-smp', String(machine.cpus), '-m', String(machine.memory)],
    ...(machine.uuid ? ['-uuid', machine.uuid] : []),
    ...(machine.restarts ? [] : ['-no-reboot']),
    ...['-chardev', machine.console ? `file,id=console,path=${quoted(machine.console)},append=on` : 'stdio,id=console,signal=off'],
    ...['-serial', 'chardev:console'],
    ...(machine.control ? ['-qmp', `unix:${quoted(machine.control)},server=on,wait=off`] : ['-monitor', 'none']),
    ...firmware(machine.firmware),
    ...['-device', 'virtio-rng-pci', '-device', 'qemu-xhci,id=usb'],
    ...(machine.watchdog ? ['-device', 'i6300esb', '-action', 'watchdog=reset'] : []),
    ...tpm(machine.tpm),
    ...agent(machine.agent),
    ...kernel(machine.kernel),
    ...adapters(machine.disks),
    ...machine.disks.flatMap(disk),
    ...(machine.cdrom
      ? [
          ...['-drive', `if=none,id=cd,media=cdrom,readonly=on,format=raw,file=${quoted(machine.cdrom)}`],
          // After the disks: a machine that was installed starts from its disk.
          ...['-device', 'ide-cd,drive=cd,bus=ide.5,bootindex=20'],
        ]
      : []),
    ...machine.networks.flatMap(network),
    ...(machine.smbios ?? []).flatMap((each) => ['-smbios', each]),
  ]
}

function firmware(of: Firmware): string[] {
  if (of.kind === 'bios') return []
  return [
    ...['-drive', `if=pflash,unit=0,format=raw,readonly=on,file=${quoted(of.code)}`],
    ...['-drive', `if=pflash,unit=1,format=raw,file=${quoted(of.variables)}`],
  ]
}

function tpm(socket: string | undefined): string[] {
  if (socket === undefined) return []
  return [
    ...['-chardev', `socket,id=tpm-control,path=${quoted(socket)}`],
    ...['-tpmdev', 'emulator,id=tpm,chardev=tpm-control', '-device', 'tpm-tis,tpmdev=tpm'],
  ]
}

/** The port by which a guest agent is called (qemu-ga(8)). */
function agent(socket: string | undefined): string[] {
  if (socket === undefined) return []
  return [
    ...['-device', 'virtio-serial-pci', '-chardev', `socket,id=agent,path=${quoted(socket)},server=on,wait=off`],
    ...['-device', 'virtserialport,chardev=agent,name=org.qemu.guest_agent.0'],
  ]
}

function kernel(of: VirtualMachine['kernel']): string[] {
  return of ? ['-kernel', of.kernel, '-initrd', of.initramfs, '-append', of.commandLine] : []
}

/** The adapters that disks of some kinds hang on, one for all of a kind. */
function adapters(disks: readonly MachineDisk[]): string[] {
  const has = (bus: DiskBus) => disks.some((each) => each.bus === bus)
  return [
    ...(has('scsi') ? ['-device', 'virtio-scsi-pci,id=scsi'] : []),
    ...(has('megaraid') ? ['-device', 'megasas-gen2,id=megaraid'] : []),
    ...(has('ahci') ? ['-device', 'ich9-ahci,id=ahci'] : []),
  ]
}

function disk(of: MachineDisk, index: number, all: readonly MachineDisk[]): string[] {
  const id = `disk${index}`
  const place = all.slice(0, index).filter((each) => each.bus === of.bus).length
  const drive = `if=none,id=${id},format=${of.format},discard=unmap,cache=writeback,${of.readOnly ? 'readonly=on,' : ''}file=${quoted(of.file)}`
  const serial = of.serial ? `,serial=${of.serial}` : ''
  const device: Record<DiskBus, string> = {
    virtio: `virtio-blk-pci,drive=${id}${serial}`,
    // q35 has no parallel ATA: its own six SATA ports are what an "ide" disk is plugged into, as the CD drive is into the last.
    ide: `ide-hd,drive=${id},bus=ide.${place}${serial}`,
    ahci: `ide-hd,drive=${id},bus=ahci.${place}${serial}`,
    scsi: `scsi-hd,drive=${id},bus=scsi.0${serial}`,
    megaraid: `scsi-hd,drive=${id},bus=megaraid.0,scsi-id=${place}${serial}`,
    nvme: `nvme,drive=${id},serial=${of.serial ?? `nvme${index}`}`,
    usb: `usb-storage,bus=usb.0,drive=${id}${serial}`,
  }
  const sectors = of.sectorSize ? `,logical_block_size=${of.sectorSize},physical_block_size=${of.sectorSize}` : ''
  return ['-drive', drive, '-device', `${device[of.bus]}${sectors},bootindex=${index + 1}`]
}

function network(of: MachineNetwork, index: number): string[] {
  const id = `net${index}`
  const device = `virtio-net-pci,netdev=${id}`
  if (of.kind === 'tap')
    return [
      ...['-netdev', `tap,id=${id},ifname=${of.link},script=no,downscript=no,vhost=off`],
      ...['-device', `${device},mac=${of.hardwareAddress},host_mtu=${of.mtu},romfile=`],
    ]
  if (of.kind === 'cable') {
    const end = `server=${of.listens ? 'on' : 'off'},addr.type=unix,addr.path=${quoted(of.path)}`
    return [
      '-netdev',
      `stream,id=${id},${end}${of.listens ? '' : ',reconnect=1'}`,
      '-device',
      `${device},mac=${of.hardwareAddress},romfile=`,
    ]
  }
  const forwards = of.forwards.map(({ hostPort, port }) => `,hostfwd=tcp:127.0.0.1:${hostPort}-:${port}`).join('')
  const boot = of.pxe ? `,tftp=${quoted(of.pxe.folder)},bootfile=${quoted(of.pxe.file)}` : ''
  return [
    ...['-netdev', `user,id=${id}${of.outside ? '' : ',restrict=on'}${forwards}${boot}`],
    ...['-device', of.pxe ? `${device},bootindex=0` : `${device},romfile=`],
  ]
}

/** A comma within a value is doubled (qemu(1), "-drive"). */
function quoted(value: string): string {
  return value.replaceAll(',', ',,')
}
