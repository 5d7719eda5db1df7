/** The DHCP servers of Debian, each with the same settings in its own format. */
import { dnsmasqServing } from './dnsmasq.ts'
import type { Lab } from './lab.ts'
import { program } from './namespaces.ts'

/** What a server should do; times in seconds. */
export interface Service {
  /** The server's own address. */
  readonly from?: string
  readonly first: string
  readonly last: string
  readonly lifetime: number
  readonly renew: number
  readonly rebind: number
  readonly rapid?: boolean
}

type Daemon = Awaited<ReturnType<Lab['start']>>

interface Server {
  readonly program: string
  /** The shortest lease that it gives. */
  readonly shortest: number
  start(lab: Lab, service: Service): Promise<Daemon>
}

const lower = (address: string) => address.split('.').slice(0, 3).join('.')

/** Servers of DHCPv4. */
export const servers4: Readonly<Record<string, Server>> = {
  dnsmasq: {
    program: 'dnsmasq',
    shortest: 120,
    start(lab, { first, last, lifetime, renew, rebind, from = '10.8.0.1' }) {
      return lab.start(
        dnsmasqServing(
          lab.spaces.folder,
          'br0',
          'dhcp-sequential-ip',
          `dhcp-range=${first},${last},${lifetime}`,
          `dhcp-option=option:router,${from}`,
          `dhcp-option=option:T1,${renew}`,
          `dhcp-option=option:T2,${rebind}`,
        ),
        /DHCP, /,
      )
    },
  },
  kea: {
    program: 'kea-dhcp4',
    shortest: 1,
    start(lab, { first, last, lifetime, renew, rebind, from = '10.8.0.1' }) {
      const conf = lab.file(
        'kea4.json',
        keaConf('Dhcp4', {
          authoritative: true,
          subnet4: [
            {
              subnet: `${lower(first)}.0/24`,
              pools: [{ pool: `${first} - ${last}` }],
              'option-data': [{ name: 'routers', data: from }],
            },
          ],
          'interfaces-config': { interfaces: ['br0'], 'dhcp-socket-type': 'raw' },
          'valid-lifetime': lifetime,
          'renew-timer': renew,
          'rebind-timer': rebind,
        }),
      )
      return lab.start(['env', ...keaPlace(lab), program('kea-dhcp4')!, '-c', conf], /DHCP4_STARTED/)
    },
  },
  isc: {
    program: 'dhcpd',
    shortest: 1,
    start(lab, { first, last, lifetime, renew, rebind, from = '10.8.0.1' }) {
      const conf = lab.file(
        'dhcpd.conf',
        `authoritative;\ndefault-lease-time ${lifetime};\nmax-lease-time ${lifetime};\nmin-lease-time ${lifetime};
option dhcp-renewal-time ${renew};\noption dhcp-rebinding-time ${rebind};\nping-check false;
subnet ${lower(first)}.0 netmask 255.255.255.0 { range ${first} ${last}; option routers ${from}; }\n`,
      )
      return lab.start([program('dhcpd')!, '-4', '-f', '-d', '-cf', conf, ...iscPlace(lab), 'br0'], /Server starting service/)
    },
  },
}

/** Servers of DHCPv6. */
export const servers6: Readonly<Record<string, Server>> = {
  kea: {
    program: 'kea-dhcp6',
    shortest: 1,
    async start(lab, { first, last, lifetime, renew, rebind, rapid = false }) {
      await lab.ready6()
      const conf = lab.file(
        'kea6.json',
        keaConf('Dhcp6', {
          subnet6: [
            {
              subnet: 'fd00:8::/64',
              interface: 'br0',
              'rapid-commit': rapid,
              pools: [{ pool: `${first} - ${last}` }],
              'option-data': [{ name: 'dns-servers', data: 'fd00:8::1' }],
            },
          ],
          'interfaces-config': { interfaces: ['br0'] },
          'server-id': { type: 'LL', persist: false },
          'valid-lifetime': lifetime,
          'preferred-lifetime': lifetime,
          'renew-timer': renew,
          'rebind-timer': rebind,
        }),
      )
      return lab.start(['env', ...keaPlace(lab), program('kea-dhcp6')!, '-c', conf], /DHCP6_STARTED/)
    },
  },
  isc: {
    program: 'dhcpd',
    shortest: 1,
    async start(lab, { first, last, lifetime, renew, rebind, rapid = false }) {
      await lab.ready6()
      const conf = lab.file(
        'dhcpd6.conf',
        `authoritative;\ndefault-lease-time ${lifetime};\npreferred-lifetime ${lifetime};
option dhcp-renewal-time ${renew};\noption dhcp-rebinding-time ${rebind};\n${rapid ? 'option dhcp6.rapid-commit;\n' : ''}
option dhcp6.name-servers fd00:8::1;
subnet6 fd00:8::/64 { range6 ${first} ${last}; }\n`,
      )
      return lab.start([program('dhcpd')!, '-6', '-f', '-d', '-cf', conf, ...iscPlace(lab), 'br0'], /Server starting service/)
    },
  },
}

function keaConf(kind: string, more: object): string {
  const loggers = [{ name: kind === 'Dhcp4' ? 'kea-dhcp4' : 'kea-dhcp6', severity: 'INFO', output_options: [{ output: 'stdout' }] }]
  return JSON.stringify({ [kind]: { 'lease-database': { type: 'memfile', persist: false }, loggers, ...more } })
}

const keaPlace = (lab: Lab) => [`KEA_PIDFILE_DIR=${lab.spaces.folder}`, 'KEA_LOCKFILE_DIR=none']

function iscPlace(lab: Lab): string[] {
  const leases = lab.file('dhcpd.leases', '')
  return ['-lf', leases, '-pf', `${lab.spaces.folder}/dhcpd.pid`]
}
