/**
 * Flags of the field's tool that scripts give and that nothing here follows. A value that requests what is done anyway is accepted;
 * any other is refused with what to do instead, so that no script believes it got what it requested.
 */

import { type Command, Option } from 'commander'
import { UsageError } from '../../failure.ts'

/** A flag, the values that change nothing here, and what to do instead of the others. */
interface ForeignFlag {
  readonly flag: string
  /** `on` and `off` are the two of a switch. */
  readonly fine: readonly string[]
  readonly instead: string
}

const images = 'images are made with "./mkimage.sh" and found with --images'
const starters = 'machines start from what "./mkimage.sh" made, found with --images and chosen with --presets'
const plugins = 'the network of the nodes is made without CNI plugins, leave it out'
const encryption = 'disks are not encrypted by this command: describe encrypted volumes with --config-patch'
const shaping = 'shape the links of the nodes ("ip link show type veth") with "tc qdisc"'
const cache = 'serve images with "talosctl image cache-serve" and name it with --registry-mirror'
const nodeDisks = 'write the disks of machines as --disks driver:size,… and find them by bus and size'
const tpm = 'machines have a TPM with --presets iso-secureboot alone'

const row = (instead: string, flags: string, ...fine: string[]): ForeignFlag[] =>
  flags.split(' ').map((flag) => ({ flag: `--${flag}`, fine, instead }))

/** Flags with a value. */
const values: readonly ForeignFlag[] = [
  ...row(images, 'image-factory-auth image-factory-url', ''),
  ...row('make the image with "./mkimage.sh --extra-kernel-arg" and the like, and name it with --images', 'schematic-id', ''),
  ...row('make the image with "./mkimage.sh --extra-kernel-arg"', 'extra-boot-kernel-args', ''),
  ...row('machines start from the image that is found with --images', 'talos-version'),
  ...row('leave machines for another manager to configure with --presets maintenance', 'omni-api-endpoint', ''),
  ...row(starters, 'disk-image-path iso-path uki-path usb-path vmlinuz-path initrd-path ipxe-boot-script', ''),
  ...row('nodes have the processor of this host', 'arch', 'amd64'),
  ...row(plugins, 'cni-bin-path cni-bundle-url cni-cache-dir cni-conf-dir', ''),
  ...row('machines with --presets pxe fetch their configuration, others get it through their API', 'config-injection-method', ''),
  ...row(encryption, 'disk-encryption-key-types', 'uuid'),
  ...row(nodeDisks, 'extra-disks-serials extra-disks-tags', ''),
  ...row('sectors of machines have 512 bytes', 'disk-block-size', '512'),
  ...row('firmware is found where the packages "ovmf" and "edk2-ovmf" put it', 'extra-uefi-search-paths', ''),
  ...row(cache, 'image-cache-path image-cache-tls-cert-file image-cache-tls-key-file', ''),
  ...row(cache, 'image-cache-port', '5000'),
  ...row('every network beyond the nodes is reached by the address of this host', 'no-masquerade-cidrs', ''),
  ...row('declare volumes with --config-patch and a UserVolumeConfig', 'user-volumes', ''),
  ...row('the mesh of the nodes is --with-kubespan', 'wireguard-cidr', ''),
  ...row('machines are managed through their own API', 'with-siderolink', 'none'),
  ...row(shaping, 'with-network-bandwidth with-network-packet-corrupt with-network-packet-loss with-network-packet-reorder', '0'),
  ...row(shaping, 'with-network-jitter with-network-latency', '0', '0s'),
]

/** Switches. */
const switches: readonly ForeignFlag[] = [
  ...row('nodes reach the outside when this host does: take the default route of this host away', 'airgapped', 'off'),
  ...row('the clock of machines is that of this host', 'bad-rtc', 'off'),
  ...row('the name of a node is in its configuration, not in DHCP', 'disable-dhcp-hostname', 'off'),
  ...row('disks are files with holes', 'disk-preallocate', 'off'),
  ...row(encryption, 'encrypt-ephemeral encrypt-state encrypt-user-volumes', 'off'),
  ...row('every control plane is alike: reach the machines elsewhere with --endpoint', 'init-node-as-endpoint with-init-node', 'off'),
  ...row('the command line of the kernel is made by "./mkimage.sh"', 'skip-injecting-extra-cmdline', 'off'),
  ...row('the address of the gateway leads to every control plane; declare another with --config-patch-control-plane', 'use-vip', 'off'),
  ...row('configurations are sent through the API of the nodes', 'with-apply-config', 'on', 'off'),
  ...row('machines start from their disk once they are installed', 'with-bootloader', 'on'),
  ...row('add it to the configuration with --config-patch', 'with-debug', 'off'),
  ...row('open a shell with "talosctl debug"', 'with-debug-shell', 'off'),
  ...row('machines have no IOMMU', 'with-iommu', 'off'),
  ...row('declare where logs go with --config-patch', 'with-json-logs', 'off'),
  ...row(shaping, 'with-network-chaos', 'off'),
  ...row(tpm, 'with-tpm1_2 with-tpm2', 'off'),
  ...row('nodes are named after their role and number', 'with-uuid-hostnames', 'off'),
]

/** Declares them, hidden. */
export function foreignFlags(command: Command): Command {
  for (const { flag } of values) command.addOption(new Option(`${flag} <value>`).hideHelp())
  for (const { flag } of switches) {
    command.addOption(new Option(flag).hideHelp())
    command.addOption(new Option(`--no-${flag.slice(2)}`).hideHelp())
  }
  return command
}

/** Refuses those that were given with a value that is not what is done here. */
export function refuseForeign(command: Command): void {
  const given = (flag: string): unknown => {
    const option = command.options.find(({ long }) => long === flag)
    const name = option?.attributeName() ?? ''
    return command.getOptionValueSource(name) === 'cli' ? command.getOptionValue(name) : undefined
  }
  for (const { flag, fine, instead } of values) {
    const value = given(flag)
    if (typeof value === 'string' && !fine.includes(value)) throw new UsageError(`${flag} is not for clusters made here: ${instead}`)
  }
  for (const { flag, fine, instead } of switches) {
    const value = given(flag)
    if (value === undefined || fine.includes(value ? 'on' : 'off')) continue
    throw new UsageError(`${flag}${value ? '' : '=false'} is not for clusters made here: ${instead}`)
  }
}
