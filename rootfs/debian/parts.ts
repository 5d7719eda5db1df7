/** Which files of which Debian packages go into the root file system. The libraries they need are found by themselves. */

import { libraryFolderOf, type Target } from '../build/target.ts'

/** Files taken from one package, by patterns of their paths with /bin, /sbin and /lib already under /usr. */
export interface DebianPart {
  package: string
  why: string
  files: string[]
}

/** Everything taken from Debian but libraries and the CA certificates, which are joined into one file. */
export const debianParts = (target: Target): readonly DebianPart[] => [
  {
    package: 'nftables',
    why: 'packet filter rules of kube-proxy, flannel and the host',
    files: ['/usr/sbin/nft'],
  },
  {
    package: 'iptables',
    why: 'packet filter rules of kubelet, port mappings and CNI plugins, on nf_tables',
    files: [
      '/usr/sbin/xtables-nft-multi',
      `${libraryFolderOf(target)}/xtables/libxt_*.so`,
      `${libraryFolderOf(target)}/xtables/libipt_*.so`,
      `${libraryFolderOf(target)}/xtables/libip6t_*.so`,
    ],
  },
  { package: 'netbase', why: 'names of protocols and services', files: ['/etc/protocols', '/etc/services'] },
  { package: 'conntrack', why: 'kube-proxy forgets connections to pods that are gone', files: ['/usr/sbin/conntrack'] },
  { package: 'mount', why: 'kubelet mounts volumes', files: ['/usr/bin/mount', '/usr/bin/umount', '/usr/sbin/losetup'] },
  { package: 'nfs-common', why: 'kubelet mounts volumes of NFS servers', files: ['/usr/sbin/mount.nfs'] },
  { package: 'util-linux', why: 'kubelet looks at and checks volumes', files: ['/usr/sbin/blkid', '/usr/sbin/fsck'] },
  {
    package: 'xfsprogs',
    why: 'XFS is made, grown and repaired, and its quotas are read by the kubelet',
    files: ['/usr/sbin/mkfs.xfs', '/usr/sbin/xfs_growfs', '/usr/sbin/xfs_quota', '/usr/sbin/xfs_repair'],
  },
  {
    package: 'e2fsprogs',
    why: 'ext4 volumes are made, checked and grown, and the kubelet reads whose quota a folder counts for',
    files: ['/usr/bin/lsattr', '/usr/sbin/mke2fs', '/usr/sbin/e2fsck', '/usr/sbin/resize2fs', '/etc/mke2fs.conf'],
  },
  {
    package: 'apparmor',
    why: 'containerd confines pods by a profile, which this program compiles and loads',
    files: ['/usr/sbin/apparmor_parser', '/etc/apparmor/parser.conf', '/etc/apparmor.d/abi/3.0', '/usr/share/apparmor-features/features'],
  },
  { package: 'lvm2', why: 'volume groups on disks are activated', files: ['/usr/sbin/lvm'] },
  {
    package: 'mdadm',
    why: 'arrays of disks are assembled, and get their names',
    files: ['/usr/sbin/mdadm', '/usr/lib/udev/rules.d/63-md-raid-arrays.rules'],
  },
  { package: 'kmod', why: 'the kernel runs it to load modules', files: ['/usr/bin/kmod'] },
  {
    package: 'udev',
    why: 'devices get their names and permissions',
    files: [
      '/usr/bin/udevadm',
      '/usr/lib/udev/ata_id',
      '/usr/lib/udev/cdrom_id',
      '/usr/lib/udev/scsi_id',
      '/usr/lib/udev/rules.d/50-*.rules',
      '/usr/lib/udev/rules.d/60-block.rules',
      '/usr/lib/udev/rules.d/60-cdrom_id.rules',
      '/usr/lib/udev/rules.d/60-drm.rules',
      '/usr/lib/udev/rules.d/60-infiniband.rules',
      '/usr/lib/udev/rules.d/60-persistent-storage*.rules',
      '/usr/lib/udev/rules.d/60-serial.rules',
      '/usr/lib/udev/rules.d/64-btrfs.rules',
      '/usr/lib/udev/rules.d/75-net-description.rules',
      '/usr/lib/udev/rules.d/80-drivers.rules',
      '/usr/lib/udev/rules.d/80-net-setup-link.rules',
      '/usr/lib/systemd/network/99-default.link',
    ],
  },
]

/** The package of CA certificates, joined into the bundle below. */
export const certificatePackage = 'ca-certificates'

/** Where programs look for CA certificates. */
export const certificateBundle = '/etc/ssl/certs/ca-certificates.crt'

const toMulti = (names: string[]) => Object.fromEntries(names.map((name) => [`/usr/sbin/${name}`, 'xtables-nft-multi']))

/** Further names of files taken above: path → link target. */
export const debianLinks: Readonly<Record<string, string>> = {
  ...toMulti(['iptables', 'iptables-save', 'iptables-restore', 'ip6tables', 'ip6tables-save', 'ip6tables-restore']),
  ...toMulti(['iptables-nft', 'iptables-nft-save', 'iptables-nft-restore', 'ip6tables-nft', 'ip6tables-nft-save', 'ip6tables-nft-restore']),
  '/usr/sbin/mount.nfs4': 'mount.nfs',
  '/usr/sbin/umount.nfs': 'mount.nfs',
  '/usr/sbin/umount.nfs4': 'mount.nfs',
  '/usr/sbin/mkfs.ext4': 'mke2fs',
  '/usr/sbin/mkfs.ext3': 'mke2fs',
  '/usr/sbin/mkfs.ext2': 'mke2fs',
  '/usr/sbin/fsck.ext4': 'e2fsck',
  '/usr/sbin/fsck.ext3': 'e2fsck',
  '/usr/sbin/fsck.ext2': 'e2fsck',
  '/usr/sbin/modprobe': '../bin/kmod',
  '/usr/sbin/insmod': '../bin/kmod',
  '/usr/sbin/rmmod': '../bin/kmod',
  '/usr/lib/systemd/systemd-udevd': '../../bin/udevadm',
  '/usr/sbin/udevd': '../bin/udevadm',
}
