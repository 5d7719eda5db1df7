/** The kernel modules of an image, those that stage 0 needs, and those that are loaded before module loading is locked. */
import { moduleName } from '../../src/wire/modules-dep.ts'
import type { Arch } from '../build/target.ts'

/** The kernel package lacks something an image needs. */
export class KernelError extends Error {
  override name = 'KernelError'
}

/** Folders below the modules of a kernel that no machine uses: sound, graphics, radio, toys, other file systems. */
export const pruned: readonly string[] = [
  'kernel/sound',
  ...['accessibility', 'android', 'atm', 'bluetooth', 'comedi', 'cdx', 'extcon', 'firewire', 'gnss', 'gpu', 'greybus', 'iio', 'isdn'].map(
    (name) => `kernel/drivers/${name}`,
  ),
  ...['media', 'memstick', 'most', 'nfc', 'parport', 'pcmcia', 'power/supply', 'soundwire', 'ssb', 'staging', 'video', 'w1'].map(
    (name) => `kernel/drivers/${name}`,
  ),
  ...['chips', 'devices', 'lpddr', 'maps', 'nand', 'parsers', 'spi-nor', 'tests', 'ubi'].map((name) => `kernel/drivers/mtd/${name}`),
  ...['drivers/input/joystick', 'drivers/input/tablet', 'drivers/input/touchscreen', 'drivers/leds', 'drivers/macintosh'],
  ...['drivers/net/arcnet', 'drivers/net/can', 'drivers/net/fddi', 'drivers/net/hamradio', 'drivers/net/hippi', 'drivers/net/ieee802154'],
  ...['drivers/net/plip', 'drivers/net/ppp', 'drivers/net/slip', 'drivers/net/wan', 'drivers/net/wireless', 'drivers/net/wwan'],
  ...['drivers/platform/chrome', 'drivers/platform/surface', 'drivers/scsi/pcmcia', 'drivers/usb/gadget', 'drivers/usb/misc'],
  ...['drivers/usb/serial', 'drivers/usb/atm', 'drivers/usb/musb', 'drivers/usb/image', 'drivers/ufs', 'drivers/bcma', 'drivers/fmc'],
  ...['9p', 'adfs', 'affs', 'afs', 'befs', 'bfs', 'ceph', 'coda', 'cramfs', 'dlm', 'ecryptfs', 'efs', 'f2fs', 'freevxfs', 'gfs2'].map(
    (name) => `kernel/fs/${name}`,
  ),
  ...['hfs', 'hfsplus', 'hpfs', 'jffs2', 'jfs', 'minix', 'nilfs2', 'ntfs', 'ntfs3', 'ocfs2', 'omfs', 'orangefs', 'qnx4', 'qnx6'].map(
    (name) => `kernel/fs/${name}`,
  ),
  ...['reiserfs', 'romfs', 'sysv', 'ubifs', 'ufs', 'zonefs', 'btrfs'].map((name) => `kernel/fs/${name}`),
  ...['6lowpan', 'appletalk', 'atm', 'ax25', 'batman-adv', 'bluetooth', 'caif', 'can', 'dccp', 'decnet', 'hsr', 'ieee802154'].map(
    (name) => `kernel/net/${name}`,
  ),
  ...['lapb', 'mac80211', 'mac802154', 'netrom', 'nfc', 'phonet', 'rfkill', 'rose', 'rxrpc', 'tipc', 'wireless', 'x25', '9p', 'ceph'].map(
    (name) => `kernel/net/${name}`,
  ),
].map((path) => (path.startsWith('kernel/') ? path : `kernel/${path}`))

/** What every image must have, whatever is pruned. */
export const required: readonly string[] = [
  ...['nvme', 'ahci', 'ata_piix', 'sd_mod', 'sr_mod', 'virtio_blk', 'virtio_scsi', 'virtio_net', 'virtio_rng', 'vmw_pvscsi', 'hv_storvsc'],
  ...[
    'hv_netvsc',
    'hv_utils',
    'pci-hyperv',
    'vmd',
    'megaraid_sas',
    'mpt3sas',
    'mpi3mr',
    'smartpqi',
    'hpsa',
    'aacraid',
    '3w-9xxx',
    'arcmsr',
  ],
  ...['qla2xxx', 'lpfc', 'xen-blkfront', 'xen-netfront', 'ena', 'gve', 'vmxnet3', 'e1000', 'e1000e', 'igb', 'igc', 'ixgbe', 'i40e', 'ice'],
  ...['iavf', 'ixgbevf', 'mlx4_en', 'mlx5_core', 'bnxt_en', 'bnx2', 'bnx2x', 'tg3', 'r8169', 'atlantic', 'cxgb4', 'sfc', 'qede', 'be2net'],
  ...['usb-storage', 'uas', 'usbhid', 'hid-generic', 'xhci-pci', 'ehci-pci', 'uhci-hcd', 'cdc_ether', 'r8152', 'ax88179_178a', 'asix'],
  ...['tpm_crb', 'tpm_tis', 'iTCO_wdt', 'i6300esb', 'sp5100_tco', 'softdog', 'ipmi_watchdog', 'ipmi_si', 'wdat_wdt', 'hpwdt'],
  ...[
    'wireguard',
    '8021q',
    'bonding',
    'bridge',
    'br_netfilter',
    'vxlan',
    'geneve',
    'dummy',
    'veth',
    'macvlan',
    'ipvlan',
    'tun',
    'vrf',
    'team',
  ],
  ...[
    'nf_tables',
    'nft_ct',
    'nft_chain_nat',
    'nft_masq',
    'nft_redir',
    'nft_reject_inet',
    'nft_fib_inet',
    'nft_numgen',
    'nft_hash',
    'nft_log',
  ],
  ...[
    'nft_limit',
    'nft_tproxy',
    'nft_socket',
    'nft_compat',
    'ip_vs',
    'ip_vs_rr',
    'ip_set',
    'xt_set',
    'nf_conntrack',
    'nf_conntrack_netlink',
  ],
  ...[
    'xts',
    'adiantum',
    'dm-mod',
    'dm-verity',
    'dm-crypt',
    'dm-thin-pool',
    'dm-snapshot',
    'dm-mirror',
    'dm-raid',
    'raid1',
    'raid456',
    'dm-multipath',
  ],
  ...[
    'xfs',
    'ext4',
    'vfat',
    'isofs',
    'udf', // the provisioning medium of Azure
    'squashfs',
    'overlay',
    'loop',
    'fuse',
    'nfs',
    'nfsv4',
    'cifs',
    'iscsi_tcp',
    'nvme-tcp',
    'nbd',
    'vhost_net',
  ],
  ...['nls_cp437', 'nls_ascii', 'nls_utf8', 'kvm_intel', 'kvm_amd', 'vfio-pci', 'zram', 'sch_fq_codel', 'sch_ingress', 'cls_bpf', 'sctp'],
]

/** Of these, what Debian's kernel for arm64 does not have: drivers of x86 boards, and TCG_TIS and VMD, which it leaves out. */
const absentOnArm: ReadonlySet<string> = new Set([
  ...['vmw_pvscsi', 'vmd', 'arcmsr', 'uhci-hcd', 'tpm_tis', 'iTCO_wdt', 'sp5100_tco', 'hpwdt', 'kvm_intel', 'kvm_amd'],
])

/** Drivers of boards without which a controller there has no power or stays in reset. */
const boardSupplies = /^kernel\/drivers\/(regulator\/(fixed|gpio-regulator)|reset\/reset-raspberrypi)\.ko/

/** Folders of drivers that may lie between stage 0 and the medium that holds the root. */
const onTheWay =
  /^kernel\/drivers\/(ata|cdrom|hv|message\/fusion|mmc|nvme\/host|pci\/controller|scsi|usb\/core|usb\/host|usb\/storage|virtio)\/|^kernel\/drivers\/block\/(virtio_blk|xen-blkfront)\.ko/

/** Excluded from these: drivers that need a network, tapes, obsolete adapters, and devices that are no disks. */
const notOnTheWay =
  /\/(fcoe|libfc|bnx2fc|bnx2i|cxgbi|qedf|qedi|qla4xxx|be2iscsi|bfa|csiostor|fnic|snic|elx|iscsi|libiscsi|libiscsi_tcp|iscsi_tcp|st|ch|osst|ses|sg|scsi_debug|virtio_balloon|virtio_input|virtio_mem|hv_balloon|hv_utils|mspro_block|nvme-tcp|nvme-rdma|nvme-fc|aic94xx|aic7xxx|pata_legacy|wd719x|esas2r|am53c974|esp_scsi|a100u2w|atp870u|dc395x|dmx3191d|g_NCR5380|imm|ppa|nsp32|sym53c8xx_2|qlogicfas408|advansys|aha\w*|fdomain\w*|initio|stex|ips|gdth|BusLogic)(\.ko|\/)/

/** The hash of dm-verity in the instructions of a processor; stage 0 goes on where it lacks them. */
const hashes: Readonly<Record<Arch, readonly string[]>> = { amd64: ['sha256-ssse3'], arm64: ['sha256-arm64', 'sha2-ce'] }

/** What stage 0 loads on every machine. */
export const early = (arch: Arch = 'amd64'): readonly string[] => [
  ...hashes[arch],
  'loop',
  'squashfs',
  'dm-verity',
  'isofs',
  'vfat',
  'nls_cp437',
  'nls_ascii',
  'nls_utf8',
  'efivarfs',
]

/** Whether a module may be needed to reach the medium that holds the root. */
export const mayHoldRoot = (path: string): boolean => boardSupplies.test(path) || (onTheWay.test(path) && !notOnTheWay.test(path))

/** Modules for hot-plugged devices and later requests; nothing can be loaded once the hardware is up. */
export const beforeLock: readonly string[] = [
  // Disks, sticks and what is on them.
  ...['usb-storage', 'uas', 'sd_mod', 'sr_mod', 'nvme', 'nvme-tcp', 'iscsi_tcp', 'nbd', 'loop', 'dm-mod', 'dm-crypt', 'dm-verity'],
  // Ciphers of encrypted volumes; dm-crypt does not depend on them.
  ...['xts', 'aesni-intel', 'adiantum', 'nhpoly1305', 'nhpoly1305-sse2', 'nhpoly1305-avx2', 'chacha-x86_64', 'chacha_generic'],
  ...['aes-ce-blk', 'aes-neon-bs', 'aes-neon-blk', 'nhpoly1305-neon', 'chacha-neon'],
  ...['dm-thin-pool', 'dm-snapshot', 'dm-mirror', 'dm-raid', 'dm-multipath', 'raid0', 'raid1', 'raid10', 'raid456'],
  ...['xfs', 'ext4', 'vfat', 'isofs', 'udf', 'squashfs', 'overlay', 'fuse', 'nfs', 'nfsv4', 'cifs', 'nls_cp437', 'nls_ascii', 'nls_utf8'],
  // Keyboards and network adapters that are plugged in.
  ...['usbhid', 'hid-generic', 'xhci-pci', 'cdc_ether', 'cdc_ncm', 'r8152', 'ax88179_178a', 'asix', 'smsc95xx'],
  // Links and addresses that a configuration or a pod requests.
  ...['wireguard', '8021q', 'bonding', 'bridge', 'br_netfilter', 'vxlan', 'geneve', 'ipip', 'sit', 'ip6_tunnel', 'ip_gre', 'dummy', 'veth'],
  ...['macvlan', 'macvtap', 'ipvlan', 'tun', 'tap', 'vrf', 'team', 'ifb', 'vhost_net', 'vhost_vsock', 'af_packet_diag', 'inet_diag'],
  ...[
    'tcp_diag',
    'udp_diag',
    'unix_diag',
    'netlink_diag',
    'sctp',
    'tcp_bbr',
    'sch_fq',
    'sch_fq_codel',
    'sch_htb',
    'sch_tbf',
    'sch_ingress',
  ],
  ...['sch_prio', 'cls_bpf', 'cls_u32', 'cls_flower', 'cls_matchall', 'act_bpf', 'act_mirred', 'act_police', 'openvswitch'],
  // Packet filters: nf_tables, and what iptables needs on top of it.
  ...['nf_tables', 'nf_conntrack_netlink', 'nf_flow_table_inet', 'nf_log_syslog', 'nfnetlink_log', 'nfnetlink_queue'],
  ...['nf_conntrack_ftp', 'nf_conntrack_sip', 'nf_conntrack_tftp', 'nf_nat_ftp', 'nf_nat_tftp'],
  ...['ip_tables', 'iptable_filter', 'iptable_nat', 'iptable_mangle', 'iptable_raw', 'ip6_tables', 'ip6table_filter', 'ip6table_nat'],
  ...['ip6table_mangle', 'ip6table_raw', 'ebtables'],
  // Time outs, trusted platform modules, virtual machines in pods.
  ...['softdog', 'tpm_crb', 'tpm_tis', 'kvm_intel', 'kvm_amd', 'vfio-pci', 'configs', 'msr', 'cpuid'],
]

/** Modules that would create links and disks on load without a request. */
const parameters: Readonly<Record<string, string>> = {
  bonding: 'max_bonds=0',
  dummy: 'numdummies=0',
  ifb: 'numifbs=0',
  nbd: 'nbds_max=0',
}

/** Every match of iptables and ebtables is a module of its own, every expression of nftables, every kind of set and every scheduler of IPVS. */
const matches = /^kernel\/net\/(\w+\/)?netfilter\/((xt|nft|ipt|ip6t|ebt)_|ipset\/|ipvs\/)/

/** The modules to be loaded before the lock, of those that this kernel has: names with parameters. */
export function loadedBeforeLock(paths: readonly string[]): string[] {
  const wanted = new Set(beforeLock.map((name) => name.replaceAll('-', '_')))
  return paths
    .filter((path) => wanted.has(moduleName(path)) || matches.test(path))
    .map(moduleName)
    .sort()
    .map((name) => (parameters[name] ? `${name} ${parameters[name]}` : name))
}

/** The dependencies of a module, from its `.modinfo` (include/linux/module.h): names, as in `depends=a,b`. */
export function dependsOf(module: Buffer): string[] {
  const at = module.indexOf('\0depends=')
  if (at < 0) return []
  const end = module.indexOf(0, at + 1)
  return module
    .toString('latin1', at + '\0depends='.length, end)
    .split(',')
    .filter(Boolean)
}

/**
 * Paths that remain: what depends on a module that goes, goes too. Throws KernelError when a required one would, unless it is
 * among the names of what the kernel has built in.
 */
export function keptModules(modules: ReadonlyMap<string, readonly string[]>, builtin: ReadonlySet<string>, arch: Arch = 'amd64'): string[] {
  const kept = new Map(
    [...modules.keys()].filter((path) => !pruned.some((folder) => path.startsWith(`${folder}/`))).map((path) => [moduleName(path), path]),
  )
  for (let lost = true; lost; ) {
    lost = false
    for (const [name, path] of kept)
      if (modules.get(path)?.some((each) => !kept.has(each.replaceAll('-', '_')))) {
        kept.delete(name)
        lost = true
      }
  }
  const needed = arch === 'arm64' ? required.filter((name) => !absentOnArm.has(name)) : required
  const absent = needed.filter((name) => !kept.has(name.replaceAll('-', '_')) && !builtin.has(name.replaceAll('-', '_')))
  if (absent.length) throw new KernelError(`the kernel has no module ${absent.join(', ')}`)
  return [...kept.values()].sort()
}
