/** Installs the judges of the network's stories where they are missing; none of them is started as a service. */
import { existsSync, rmSync, writeFileSync } from 'node:fs'
import { failed } from '../../rootfs/build/failure.ts'
import { prepareHost } from '../../rootfs/build/host.ts'

/** Run by Debian's packages to find out whether their services may be started (invoke-rc.d(8)): 101 means no. */
const policy = '/usr/sbin/policy-rc.d'

const packages = [
  { name: 'dnsmasq-base', why: 'serves DHCP to the stories', shown: '/usr/sbin/dnsmasq' },
  { name: 'kea-dhcp4-server', why: 'serves DHCP to the stories', shown: '/usr/sbin/kea-dhcp4' },
  { name: 'kea-dhcp6-server', why: 'serves DHCPv6 to the stories', shown: '/usr/sbin/kea-dhcp6' },
  { name: 'isc-dhcp-server', why: 'serves DHCP to the stories', shown: '/usr/sbin/dhcpd' },
  { name: 'chrony', why: 'serves the time to the stories', shown: '/usr/sbin/chronyd' },
  { name: 'bind9-dnsutils', why: 'queries the resolver as other clients do', shown: '/usr/bin/dig' },
  { name: 'nftables', why: 'sets the packet filters of the stories', shown: '/usr/sbin/nft' },
  { name: 'iproute2', why: 'makes neighbours forgotten', shown: '/usr/sbin/ip' },
  { name: 'rsyslog', why: 'receives logs', shown: '/usr/sbin/rsyslogd' },
  { name: 'rsyslog-gnutls', why: 'receives logs over TLS', shown: '/usr/lib/x86_64-linux-gnu/rsyslog/lmnsd_gtls.so' },
  { name: 'iputils-ping', why: 'tries links', shown: '/usr/bin/ping' },
  { name: 'wireguard-tools', why: 'configures and shows WireGuard links', shown: '/usr/bin/wg' },
  { name: 'prometheus', why: 'reads metrics, and checks the rules of alerts', shown: '/usr/bin/promtool' },
  { name: 'ethtool', why: 'shows the settings of network interfaces', shown: '/usr/sbin/ethtool' },
]

const ours = process.getuid?.() === 0 && !existsSync(policy)
try {
  if (ours) writeFileSync(policy, '#!/bin/sh\nexit 101\n', { mode: 0o755 })
  await prepareHost(packages)
} catch (error) {
  failed(error)
} finally {
  if (ours) rmSync(policy, { force: true })
}
