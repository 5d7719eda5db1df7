/**
 * Recorded metadata of each platform for a machine with two links, after its documentation, and the expected result. Unit tests
 * read it from a map, the story over HTTP.
 */
interface Request {
  readonly method: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string | undefined
}

type Answer = string | ((request: Request) => string | undefined)

export interface Recording {
  /** By address. */
  readonly answers?: Readonly<Record<string, Answer>>
  /** Files by label of a disk. */
  /** Files of media in optical drives, by the name of the drive. */
  readonly optical?: Readonly<Record<string, Readonly<Record<string, string>>>>
  readonly disks?: Readonly<Record<string, Readonly<Record<string, string>>>>
  readonly guestinfo?: Readonly<Record<string, string>>
  readonly serial?: string | undefined
  /** The expected readiness report. */
  readonly reports?: string
  readonly want: {
    readonly links?: readonly string[]
    readonly addresses?: readonly string[]
    readonly routes?: readonly string[]
    readonly operators?: readonly string[]
    readonly resolvers?: readonly string[]
    readonly timeServers?: readonly string[]
    readonly hostname: string
    readonly external?: readonly string[]
    readonly metadata: Readonly<Record<string, unknown>>
  }
}

export const nics = [
  { name: 'eth0', hardwareAddress: '02:00:00:00:00:01', index: 2 },
  { name: 'eth1', hardwareAddress: '02:00:00:00:00:02', index: 3 },
] as const
const [mac0, mac1] = nics.map(({ hardwareAddress }) => hardwareAddress) as [string, string]

/** What every platform is given as user data, packed in its way. */
export const userData = 'version: v1alpha1\nmachine:\n  type: worker\n'
const packed = Buffer.from(userData).toString('base64')

const meta = 'http://169.254.169.254'
const withHeader =
  (name: string, value: string, text: string): Answer =>
  ({ headers }) =>
    headers[name] === value ? text : undefined

/** Every path below an address, each with the same condition. */
const below = (base: string, condition: [string, string], paths: Readonly<Record<string, string>>): Record<string, Answer> =>
  Object.fromEntries(Object.entries(paths).map(([path, text]) => [`${base}/${path}`, withHeader(...condition, text)]))

const aws: Recording = {
  answers: {
    [`${meta}/latest/api/token`]: ({ method, headers }) =>
      method === 'PUT' && headers['x-aws-ec2-metadata-token-ttl-seconds'] ? 'token-1' : undefined,
    ...below(`${meta}/latest`, ['x-aws-ec2-metadata-token', 'token-1'], {
      'meta-data/hostname': 'ip-10-0-0-5.eu-north-1.compute.internal',
      'meta-data/local-hostname': 'ip-10-0-0-5.eu-north-1.compute.internal',
      'meta-data/public-hostname': 'ec2-198-51-100-5.eu-north-1.compute.amazonaws.com',
      'meta-data/instance-type': 'm6i.large',
      'meta-data/instance-id': 'i-0123456789abcdef0',
      'meta-data/instance-life-cycle': 'spot',
      'meta-data/placement/region': 'eu-north-1',
      'meta-data/placement/availability-zone': 'eu-north-1b',
      'meta-data/public-ipv4': '198.51.100.5',
      'meta-data/network/interfaces/macs/': `${mac0}/\n${mac1}/\n`,
      [`meta-data/network/interfaces/macs/${mac0}/device-number`]: '0',
      [`meta-data/network/interfaces/macs/${mac1}/device-number`]: '1',
      [`meta-data/network/interfaces/macs/${mac0}/ipv6s`]: '2001:db8::5',
      'meta-data/tags/instance': 'Name\nteam',
      'meta-data/tags/instance/Name': 'node-5',
      'meta-data/tags/instance/team': 'blue',
      'user-data': userData,
    }),
  },
  want: {
    links: ['eth0', 'eth1'],
    operators: ['dhcp4 eth0 1024', 'dhcp6 eth0 1024', 'dhcp4 eth1 2048'],
    hostname: 'ip-10-0-0-5 eu-north-1.compute.internal',
    external: ['198.51.100.5'],
    metadata: {
      platform: 'aws',
      hostname: 'ip-10-0-0-5.eu-north-1.compute.internal',
      region: 'eu-north-1',
      zone: 'eu-north-1b',
      instanceType: 'm6i.large',
      instanceId: 'i-0123456789abcdef0',
      providerId: 'aws:///eu-north-1b/i-0123456789abcdef0',
      spot: true,
      internalDNS: 'ip-10-0-0-5.eu-north-1.compute.internal',
      externalDNS: 'ec2-198-51-100-5.eu-north-1.compute.amazonaws.com',
      tags: { Name: 'node-5', team: 'blue' },
    },
  },
}

const bare = (mac: string) => mac.replaceAll(':', '').toUpperCase()
const resourceId = '/subscriptions/s1/resourceGroups/g1/providers/Microsoft.Compute/virtualMachines/node-5'
const fabric = 'http://168.63.129.16/machine'
const started =
  '<GoalStateIncarnation>3</GoalStateIncarnation><Container><ContainerId>c-1</ContainerId><RoleInstanceList><Role><InstanceId>i-1._node</InstanceId><Health><State>Ready</State></Health></Role></RoleInstanceList></Container>'
const azure: Recording = {
  reports: started,
  answers: {
    [`${fabric}/?comp=goalstate`]: withHeader(
      'x-ms-version',
      '2012-11-30',
      '<?xml version="1.0"?><GoalState><Version>2012-11-30</Version><Incarnation>3</Incarnation><Machine><ExpectedState>Started</ExpectedState></Machine>\n<Container><ContainerId>c-1</ContainerId><RoleInstanceList><RoleInstance><InstanceId>i-1._node</InstanceId></RoleInstance></RoleInstanceList></Container></GoalState>',
    ),
    [`${fabric}?comp=health`]: ({ method, headers, body = '' }) =>
      method === 'POST' && headers['x-ms-version'] && body.includes(started) ? '' : undefined,
    ...below(`${meta}/metadata`, ['metadata', 'true'], {
      'instance/compute?api-version=2021-12-13&format=json': JSON.stringify({
        name: 'node-5',
        osProfile: { computerName: 'node-five' },
        location: 'WestEurope',
        zone: '2',
        vmSize: 'Standard_D2s_v5',
        resourceId,
        priority: 'Spot',
        tagsList: [{ name: 'team', value: 'blue' }],
      }),
      'instance/network/interface?api-version=2021-12-13&format=json': JSON.stringify([
        {
          macAddress: bare(mac0),
          ipv4: {
            ipAddress: [{ privateIpAddress: '10.1.0.5', publicIpAddress: '198.51.100.6' }],
            subnet: [{ address: '10.1.0.0', prefix: '24' }],
          },
          ipv6: { ipAddress: [{ privateIpAddress: 'fd00:1::5' }] },
        },
        { macAddress: bare(mac1), ipv4: { ipAddress: [{ privateIpAddress: '10.2.0.5', publicIpAddress: '' }] }, ipv6: { ipAddress: [] } },
      ]),
      'loadbalancer?api-version=2021-12-13&format=json': JSON.stringify({
        loadbalancer: { publicIpAddresses: [{ frontendIpAddress: '203.0.113.9', privateIpAddress: '10.1.0.5' }] },
      }),
      'instance/compute/userData?api-version=2021-12-13&format=text': packed,
    }),
  },
  want: {
    links: ['eth0', 'eth1'],
    operators: ['dhcp4 eth0 1024', 'dhcp6 eth0 1024', 'dhcp4 eth1 2048'],
    hostname: 'node-five',
    external: ['198.51.100.6', '203.0.113.9'],
    metadata: {
      platform: 'azure',
      hostname: 'node-five',
      region: 'westeurope',
      zone: '2',
      instanceType: 'Standard_D2s_v5',
      instanceId: resourceId,
      providerId: `azure://${resourceId}`,
      spot: true,
      tags: { team: 'blue' },
    },
  },
}

/** User data of the instance metadata service is not read where the medium has some. */
const azureCustomData: Recording = {
  ...azure,
  optical: {
    sr0: {
      'ovf-env.xml': `<?xml version="1.0" encoding="utf-8"?>
<Environment xmlns="http://schemas.dmtf.org/ovf/environment/1" xmlns:wa="http://schemas.microsoft.com/windowsazure">
<wa:ProvisioningSection><wa:Version>1.0</wa:Version><LinuxProvisioningConfigurationSet xmlns="http://schemas.microsoft.com/windowsazure">
<HostName>node-5</HostName><CustomData>${Buffer.from(userData).toString('base64')}</CustomData></LinuxProvisioningConfigurationSet>
</wa:ProvisioningSection></Environment>`,
    },
  },
  answers: Object.fromEntries(Object.entries(azure.answers ?? {}).filter(([url]) => !url.includes('userData'))),
}

const gcp: Recording = {
  answers: below(`${meta}/computeMetadata/v1`, ['metadata-flavor', 'Google'], {
    'instance/?recursive=true&alt=json': JSON.stringify({
      id: 1234567890123,
      name: 'node-5',
      hostname: 'node-5.europe-north1-a.c.project-1.internal',
      zone: 'projects/42/zones/europe-north1-a',
      machineType: 'projects/42/machineTypes/e2-medium',
      scheduling: { preemptible: 'TRUE' },
      networkInterfaces: [
        {
          mac: mac0,
          mtu: 1460,
          ip: '10.132.0.5',
          ipv6: ['fd20:1::5'],
          accessConfigs: [{ externalIp: '198.51.100.7', type: 'ONE_TO_ONE_NAT' }],
        },
      ],
    }),
    'project/project-id': 'project-1',
    'instance/attributes/user-data': userData,
  }),
  want: {
    links: ['eth0 1460'],
    operators: ['dhcp4 eth0 1024', 'dhcp6 eth0 1024'],
    timeServers: ['metadata.google.internal'],
    hostname: 'node-5 europe-north1-a.c.project-1.internal',
    external: ['198.51.100.7'],
    metadata: {
      platform: 'gcp',
      hostname: 'node-5.europe-north1-a.c.project-1.internal',
      region: 'europe-north1',
      zone: 'europe-north1-a',
      instanceType: 'e2-medium',
      instanceId: '1234567890123',
      providerId: 'gce://project-1/europe-north1-a/node-5',
      spot: true,
    },
  },
}

const digitalOcean: Recording = {
  answers: {
    [`${meta}/metadata/v1.json`]: JSON.stringify({
      droplet_id: 271828,
      hostname: 'node-5',
      region: 'ams3',
      dns: { nameservers: ['67.207.67.2', '67.207.67.3'] },
      interfaces: {
        public: [
          {
            mac: mac0,
            type: 'public',
            ipv4: { ip_address: '198.51.100.8', netmask: '255.255.240.0', gateway: '198.51.96.1' },
            anchor_ipv4: { ip_address: '10.18.0.5', netmask: '255.255.0.0', gateway: '10.18.0.1' },
            ipv6: { ip_address: '2001:DB8:0:1::5', cidr: 64, gateway: '2001:DB8:0:1::1' },
          },
        ],
        private: [{ mac: mac1, type: 'private', ipv4: { ip_address: '10.133.0.5', netmask: '255.255.0.0', gateway: '10.133.0.1' } }],
      },
      reserved_ip: { ipv4: { active: true, ip_address: '203.0.113.8' } },
    }),
    [`${meta}/metadata/v1/user-data`]: userData,
  },
  want: {
    links: ['eth0', 'eth1'],
    addresses: ['eth0 198.51.100.8/20', 'eth0 10.18.0.5/16', 'eth0 2001:db8:0:1::5/64', 'eth1 10.133.0.5/16'],
    routes: ['eth0 default 198.51.96.1 1024', 'eth0 default 2001:db8:0:1::1 1024'],
    resolvers: ['67.207.67.2 67.207.67.3'],
    hostname: 'node-5',
    external: ['198.51.100.8', '203.0.113.8'],
    metadata: { platform: 'digital-ocean', hostname: 'node-5', region: 'ams3', instanceId: '271828', providerId: 'digitalocean://271828' },
  },
}

const hcloud: Recording = {
  answers: {
    [`${meta}/hetzner/v1/metadata/hostname`]: 'node-5',
    [`${meta}/hetzner/v1/metadata/instance-id`]: '31415926',
    [`${meta}/hetzner/v1/metadata/region`]: 'eu-central',
    [`${meta}/hetzner/v1/metadata/availability-zone`]: 'fsn1-dc14',
    [`${meta}/hetzner/v1/metadata/public-ipv4`]: '198.51.100.9',
    [`${meta}/hetzner/v1/metadata/network-config`]: `version: 1
config:
  - type: physical
    name: eth0
    mac_address: "${mac0}"
    subnets:
      - {type: dhcp, ipv4: true, dns_nameservers: [185.12.64.2, 185.12.64.1]}
      - {type: static, ipv6: true, address: "2001:db8:2::1/64", gateway: "fe80::1", dns_nameservers: ["2a01:4ff:ff00::add:1"]}
`,
    [`${meta}/hetzner/v1/userdata`]: userData,
  },
  want: {
    links: ['eth0'],
    addresses: ['eth0 2001:db8:2::1/64'],
    routes: ['eth0 default fe80::1 1024'],
    operators: ['dhcp4 eth0 1024'],
    resolvers: ['185.12.64.2 185.12.64.1 2a01:4ff:ff00::add:1'],
    hostname: 'node-5',
    external: ['198.51.100.9'],
    metadata: {
      platform: 'hcloud',
      hostname: 'node-5',
      region: 'eu-central',
      zone: 'fsn1-dc14',
      instanceId: '31415926',
      providerId: 'hcloud://31415926',
    },
  },
}

const openstackMeta = JSON.stringify({
  uuid: '11111111-2222-3333-4444-555555555555',
  hostname: 'node-5.novalocal',
  availability_zone: 'nova',
})
const openstackNetwork = JSON.stringify({
  links: [
    { id: 'tap0', type: 'phy', ethernet_mac_address: mac0.toUpperCase(), mtu: 1500 },
    { id: 'tap1', type: 'phy', ethernet_mac_address: mac1, mtu: 1500 },
    { id: 'b', type: 'bond', bond_links: ['tap0', 'tap1'], bond_mode: '802.3ad', bond_miimon: 50, bond_xmit_hash_policy: 'layer3+4' },
    { id: 'v', type: 'vlan', vlan_link: 'b', vlan_id: 101, mtu: 1450 },
  ],
  networks: [
    { id: 'n0', type: 'ipv4_dhcp', link: 'b' },
    {
      id: 'n1',
      type: 'ipv4',
      link: 'v',
      ip_address: '10.3.0.5',
      netmask: '255.255.255.0',
      routes: [
        { network: '0.0.0.0', netmask: '0.0.0.0', gateway: '10.3.0.1' },
        { network: '10.9.0.0', netmask: '255.255.0.0', gateway: '10.3.0.9' },
      ],
      services: [{ type: 'dns', address: '10.3.0.2' }],
    },
    { id: 'n2', type: 'ipv6', link: 'v', ip_address: 'fd00:3::5', netmask: 'ffff:ffff:ffff:ffff::', gateway: 'fd00:3::1' },
  ],
  services: [{ type: 'dns', address: '9.9.9.9' }],
})
const openstackWant: Recording['want'] = {
  links: ['eth0 1500 bond0', 'eth1 1500 bond0', 'bond0 bond', 'bond0.101 vlan 1450'],
  addresses: ['bond0.101 10.3.0.5/24', 'bond0.101 fd00:3::5/64'],
  routes: ['bond0.101 default 10.3.0.1 1024', 'bond0.101 10.9.0.0/16 10.3.0.9 1024', 'bond0.101 default fd00:3::1 1024'],
  operators: ['dhcp4 bond0 1024'],
  resolvers: ['9.9.9.9 10.3.0.2'],
  hostname: 'node-5 novalocal',
  metadata: {
    platform: 'openstack',
    hostname: 'node-5.novalocal',
    zone: 'nova',
    instanceId: '11111111-2222-3333-4444-555555555555',
    providerId: 'openstack:///11111111-2222-3333-4444-555555555555',
  },
}
const openstack: Recording = {
  answers: {
    [`${meta}/openstack/latest/meta_data.json`]: openstackMeta,
    [`${meta}/openstack/latest/network_data.json`]: openstackNetwork,
    [`${meta}/openstack/latest/user_data`]: userData,
  },
  want: openstackWant,
}
const openstackDisk: Recording = {
  disks: {
    'config-2': {
      'openstack/latest/meta_data.json': openstackMeta,
      'openstack/latest/network_data.json': openstackNetwork,
      'openstack/latest/user_data': userData,
    },
  },
  want: openstackWant,
}

const oracle: Recording = {
  answers: below(`${meta}/opc/v2`, ['authorization', 'Bearer Oracle'], {
    'instance/': JSON.stringify({
      id: 'ocid1.instance.oc1.x',
      displayName: 'Node 5',
      hostname: 'node-5',
      shape: 'VM.Standard.E4.Flex',
      canonicalRegionName: 'eu-frankfurt-1',
      region: 'eu-frankfurt-1',
      availabilityDomain: 'EMIr:EU-FRANKFURT-1-AD-2',
      metadata: { user_data: packed },
    }),
    'vnics/': JSON.stringify([
      {
        macAddr: mac0,
        privateIp: '10.4.0.5',
        subnetCidrBlock: '10.4.0.0/24',
        virtualRouterIp: '10.4.0.1',
        ipv6Addresses: ['2001:db8:4::5'],
      },
      { macAddr: mac1, privateIp: '10.5.0.5', subnetCidrBlock: '10.5.0.0/20', virtualRouterIp: '10.5.0.1' },
    ]),
  }),
  want: {
    links: ['eth0', 'eth1'],
    addresses: ['eth1 10.5.0.5/20'],
    routes: ['eth1 default 10.5.0.1 2048'],
    operators: ['dhcp4 eth0 1024', 'dhcp6 eth0 1024'],
    hostname: 'node-5',
    metadata: {
      platform: 'oracle',
      hostname: 'node-5',
      region: 'eu-frankfurt-1',
      zone: 'emir-eu-frankfurt-1-ad-2',
      instanceType: 'VM.Standard.E4.Flex',
      instanceId: 'ocid1.instance.oc1.x',
      providerId: 'oci://ocid1.instance.oc1.x',
    },
  },
}

const vultr: Recording = {
  answers: {
    [`${meta}/v1.json`]: JSON.stringify({
      hostname: 'node-5',
      'instance-v2-id': 'a747bfz6385e',
      instanceid: '42872224',
      region: { regioncode: 'EWR' },
      interfaces: [
        { mac: mac0, 'network-type': 'public', ipv4: { address: '198.51.100.10', netmask: '255.255.254.0', gateway: '198.51.100.1' } },
        { mac: mac1, 'network-type': 'private', ipv4: { address: '10.1.96.5', netmask: '255.255.240.0' } },
      ],
    }),
    [`${meta}/latest/user-data`]: userData,
  },
  want: {
    links: ['eth0', 'eth1 1450'],
    addresses: ['eth1 10.1.96.5/20'],
    operators: ['dhcp4 eth0 1024'],
    hostname: 'node-5',
    external: ['198.51.100.10'],
    metadata: { platform: 'vultr', hostname: 'node-5', region: 'ewr', instanceId: 'a747bfz6385e', providerId: 'vultr://a747bfz6385e' },
  },
}

const scaleway: Recording = {
  answers: {
    'http://169.254.42.42/conf?format=json': JSON.stringify({
      id: '5b7b3c4d',
      hostname: 'node-5',
      commercial_type: 'DEV1-M',
      tags: ['blue'],
      location: { zone_id: 'fr-par-1' },
      public_ip: { address: '198.51.100.11' },
      public_ips_v4: [{ address: '198.51.100.11', netmask: '32', gateway: '62.210.0.1', family: 'inet', provisioning_mode: 'dhcp' }],
      public_ips_v6: [{ address: '2001:db8:5::5', netmask: '64', gateway: 'fe80::ff', family: 'inet6', provisioning_mode: 'manual' }],
      private_nics: [{ mac_address: mac1 }],
    }),
    'http://169.254.42.42/user_data/cloud-init': userData,
  },
  want: {
    links: ['eth0', 'eth1'],
    addresses: ['eth0 2001:db8:5::5/64'],
    routes: ['eth0 default fe80::ff 1024'],
    operators: ['dhcp4 eth0 1024', 'dhcp4 eth1 2048'],
    hostname: 'node-5',
    external: ['198.51.100.11', '2001:db8:5::5'],
    metadata: {
      platform: 'scaleway',
      hostname: 'node-5',
      region: 'fr-par-1',
      zone: 'fr-par-1',
      instanceType: 'DEV1-M',
      instanceId: '5b7b3c4d',
      providerId: 'scaleway://instance/fr-par-1/5b7b3c4d',
      tags: { blue: '' },
    },
  },
}

const upcloud: Recording = {
  answers: {
    [`${meta}/metadata/v1.json`]: JSON.stringify({
      instance_id: '0082c083',
      hostname: 'node-5',
      region: 'us-nyc1',
      network: {
        dns: ['94.237.127.9'],
        interfaces: [
          {
            index: 1,
            mac: mac0,
            type: 'public',
            ip_addresses: [
              {
                address: '198.51.100.12',
                dhcp: true,
                family: 'IPv4',
                gateway: '198.51.100.1',
                network: '198.51.100.0/22',
                dns: ['94.237.40.9'],
              },
              { address: '203.0.113.12', dhcp: false, family: 'IPv4', gateway: '', network: '203.0.113.12/32' },
            ],
          },
          {
            index: 2,
            mac: mac1,
            type: 'private',
            ip_addresses: [{ address: '172.16.0.5', dhcp: false, family: 'IPv4', gateway: '172.16.0.1', network: '172.16.0.0/22' }],
          },
        ],
      },
    }),
    [`${meta}/metadata/v1/user_data`]: userData,
  },
  want: {
    links: ['eth0', 'eth1'],
    addresses: ['eth0 203.0.113.12/32', 'eth1 172.16.0.5/22'],
    routes: ['eth1 default 172.16.0.1 2048'],
    operators: ['dhcp4 eth0 1024'],
    resolvers: ['94.237.127.9 94.237.40.9'],
    hostname: 'node-5',
    external: ['198.51.100.12', '203.0.113.12'],
    metadata: {
      platform: 'upcloud',
      hostname: 'node-5',
      region: 'us-nyc',
      zone: 'us-nyc1',
      instanceId: '0082c083',
      providerId: 'upcloud:////0082c083',
    },
  },
}

const netplan = `version: 2
ethernets:
  first:
    match: {macaddress: "${mac0}"}
    addresses: [10.6.0.5/24]
    routes: [{to: default, via: 10.6.0.1}]
    nameservers: {addresses: [10.6.0.2], search: [example.org]}
`
const nocloudWant: Recording['want'] = {
  links: ['eth0'],
  addresses: ['eth0 10.6.0.5/24'],
  routes: ['eth0 default 10.6.0.1 1024'],
  resolvers: ['10.6.0.2 example.org'],
  hostname: 'node-5',
  metadata: { platform: 'nocloud', hostname: 'node-5', instanceId: 'i-5', zone: 'z1' },
}
const nocloudFiles = {
  'meta-data': 'instance-id: i-5\nlocal-hostname: node-5\nzone: z1\n',
  'network-config': netplan,
  'user-data': userData,
}
const nocloudDisk: Recording = { disks: { cidata: nocloudFiles }, want: nocloudWant }
const nocloud: Recording = {
  serial: 'ds=nocloud;s=http://169.254.169.254/seed/',
  answers: Object.fromEntries(Object.entries(nocloudFiles).map(([name, text]) => [`${meta}/seed/${name}`, text])),
  want: nocloudWant,
}

const vmware: Recording = {
  guestinfo: {
    'guestinfo.metadata': Buffer.from(`local-hostname: node-5\ninstance-id: i-5\nnetwork:\n${netplan.replaceAll(/^/gm, '  ')}`).toString(
      'base64',
    ),
    'guestinfo.metadata.encoding': 'base64',
    'guestinfo.talos.config': Buffer.from(Bun.gzipSync(Buffer.from(userData))).toString('base64'),
    'guestinfo.talos.config.encoding': 'gzip+base64',
  },
  want: { ...nocloudWant, metadata: { platform: 'vmware', hostname: 'node-5', instanceId: 'i-5' } },
}

/** What vSphere has for a machine that was made of an OVF template with properties. */
const ovfEnvironment = (properties: Readonly<Record<string, string>>): string =>
  [
    '<?xml version="1.0" encoding="UTF-8"?>',
    '<Environment xmlns="http://schemas.dmtf.org/ovf/environment/1" xmlns:oe="http://schemas.dmtf.org/ovf/environment/1" oe:id="">',
    '   <PlatformSection><Kind>VMware ESXi</Kind><Version>8.0.2</Version></PlatformSection>',
    '   <PropertySection>',
    ...Object.entries(properties).map(([key, value]) => `         <Property oe:key="${key}" oe:value="${value}"/>`),
    '   </PropertySection>',
    '</Environment>',
  ].join('\n')

const vmwareOvf: Recording = {
  guestinfo: {
    'guestinfo.ovfenv': ovfEnvironment({
      'instance-id': 'unused',
      userdata: Buffer.from(userData).toString('base64'),
      metadata: 'local-hostname: node-5&#10;instance-id: i-5&#xA;region: &quot;a &amp; b&quot;',
    }),
  },
  want: { hostname: 'node-5', metadata: { platform: 'vmware', hostname: 'node-5', instanceId: 'i-5', region: 'a & b' } },
}

const equinixMetal: Recording = {
  answers: {
    'https://metadata.platformequinix.com/metadata': JSON.stringify({
      id: 'e1',
      hostname: 'node-5',
      plan: 'c3.small.x86',
      metro: 'am',
      facility: 'am6',
      private_subnets: ['10.0.0.0/8'],
      network: {
        bonding: { mode: 4 },
        interfaces: [
          { name: 'enp1s0f0', mac: mac0, bond: 'bond0' },
          { name: 'enp1s0f1', mac: mac1, bond: 'bond0' },
        ],
        addresses: [
          {
            address: '198.51.100.13',
            cidr: 31,
            gateway: '198.51.100.12',
            public: true,
            management: true,
            enabled: true,
            address_family: 4,
          },
          { address: '10.25.0.5', cidr: 31, gateway: '10.25.0.4', public: false, management: true, enabled: true, address_family: 4 },
        ],
      },
    }),
    'https://metadata.platformequinix.com/userdata': userData,
  },
  want: {
    links: ['bond0 bond', 'eth0 bond0', 'eth1 bond0'],
    addresses: ['bond0 198.51.100.13/31', 'bond0 10.25.0.5/31'],
    routes: ['bond0 default 198.51.100.12 1024', 'bond0 10.0.0.0/8 10.25.0.4 1024'],
    hostname: 'node-5',
    external: ['198.51.100.13'],
    metadata: {
      platform: 'equinixMetal',
      hostname: 'node-5',
      region: 'am',
      zone: 'am6',
      instanceType: 'c3.small.x86',
      instanceId: 'e1',
      providerId: 'equinixmetal://e1',
    },
  },
}

const plainPaths = (base: string) => ({
  [`${base}/meta-data/local-hostname`]: 'node-5',
  [`${base}/meta-data/instance-id`]: 'i-5',
  [`${base}/meta-data/service-offering`]: 'small',
  [`${base}/meta-data/availability-zone`]: 'z1',
  [`${base}/meta-data/public-ipv4`]: '198.51.100.14',
  [`${base}/user-data`]: userData,
})
const plainWant = (platform: string): Recording['want'] => ({
  hostname: 'node-5',
  external: ['198.51.100.14'],
  metadata: {
    platform,
    hostname: 'node-5',
    region: 'z1',
    zone: 'z1',
    instanceType: 'small',
    instanceId: 'i-5',
    providerId: `${platform}://i-5`,
  },
})

const akamai: Recording = {
  answers: {
    [`${meta}/v1/token`]: ({ method, headers }) => (method === 'PUT' && headers['metadata-token-expiry-seconds'] ? 'token-2' : undefined),
    ...below(`${meta}/v1`, ['metadata-token', 'token-2'], {
      instance: JSON.stringify({ id: 5, label: 'node-5', region: 'us-mia', type: 'g6-standard-2' }),
      network: JSON.stringify({ ipv4: { public: ['198.51.100.15/32'] }, ipv6: { slaac: '2001:db8:6::5/128' } }),
      'user-data': packed,
    }),
  },
  want: {
    hostname: 'node-5',
    external: ['198.51.100.15', '2001:db8:6::5'],
    metadata: {
      platform: 'akamai',
      hostname: 'node-5',
      region: 'us-mia',
      instanceType: 'g6-standard-2',
      instanceId: '5',
      providerId: 'linode://5',
    },
  },
}

const opennebula: Recording = {
  disks: {
    CONTEXT: {
      'context.sh': `# Context variables generated by OpenNebula
ETH0_MAC='${mac0}'
ETH0_IP='10.7.0.5'
ETH0_MASK='255.255.255.0'
ETH0_GATEWAY='10.7.0.1'
ETH0_DNS='10.7.0.2 10.7.0.3'
ETH0_MTU='1400'
ETH1_MAC='${mac1}'
ETH1_METHOD='dhcp'
SET_HOSTNAME='node-5'
VMID='5'
USER_DATA_ENCODING='base64'
USER_DATA='${packed}'
`,
    },
  },
  want: {
    links: ['eth0 1400', 'eth1'],
    addresses: ['eth0 10.7.0.5/24'],
    routes: ['eth0 default 10.7.0.1 1024'],
    operators: ['dhcp4 eth1 1024'],
    resolvers: ['10.7.0.2 10.7.0.3'],
    hostname: 'node-5',
    metadata: { platform: 'opennebula', hostname: 'node-5', instanceId: '5', providerId: 'one://5' },
  },
}

/** Recordings by platform. Variants have a name in brackets. */
export const recordings: Readonly<Record<string, Recording>> = {
  aws,
  azure,
  'azure (custom data)': azureCustomData,
  gcp,
  'digital-ocean': digitalOcean,
  hcloud,
  openstack,
  'openstack (disk)': openstackDisk,
  oracle,
  vultr,
  scaleway,
  upcloud,
  nocloud,
  'nocloud (disk)': nocloudDisk,
  vmware,
  'vmware (OVF)': vmwareOvf,
  equinixMetal,
  exoscale: { answers: plainPaths(`${meta}/1.0`), want: plainWant('exoscale') },
  cloudstack: { answers: plainPaths('http://data-server/latest'), want: plainWant('cloudstack') },
  akamai,
  opennebula,
}

/** The platform of a recording, without the variant in brackets. */
export const platformIn = (name: string): string => name.replace(/ \(.*\)$/, '')

interface Observed {
  links: readonly { name: string; kind: string; mtu: number; masterName?: string | undefined }[]
  addresses: readonly { linkName: string; address: string }[]
  routes: readonly { outLinkName?: string | undefined; dst: string; gateway: string; priority?: number | undefined }[]
  operators: readonly {
    operator: string
    linkName: string
    dhcp4?: { routeMetric: number } | undefined
    dhcp6?: { routeMetric: number } | undefined
  }[]
  resolvers: readonly { dnsServers: readonly string[]; searchDomains?: readonly string[] | undefined }[]
  timeServers: readonly { timeServers: readonly string[] }[]
  hostnames: readonly { hostname: string; domainname: string }[]
  externalIPs: readonly string[]
  metadata?: object | undefined
}

/** Summarizes a platform's network for comparison with `want`. */
export function summaryOf(observed: Observed): Required<Recording['want']> {
  return {
    links: observed.links.map(({ name, kind, mtu, masterName }) => [name, kind, mtu, masterName].filter(Boolean).join(' ')),
    addresses: observed.addresses.map(({ linkName, address }) => `${linkName} ${address}`),
    routes: observed.routes.map(({ outLinkName, dst, gateway, priority }) => `${outLinkName} ${dst || 'default'} ${gateway} ${priority}`),
    operators: observed.operators.map(({ operator, linkName, dhcp4, dhcp6 }) => `${operator} ${linkName} ${(dhcp4 ?? dhcp6)?.routeMetric}`),
    resolvers: observed.resolvers.map(({ dnsServers, searchDomains = [] }) => [...dnsServers, ...searchDomains].join(' ')),
    timeServers: observed.timeServers.flatMap(({ timeServers }) => timeServers),
    hostname: observed.hostnames.map(({ hostname, domainname }) => `${hostname} ${domainname}`.trim()).join(),
    external: observed.externalIPs,
    metadata: { ...observed.metadata },
  }
}

/** The expected result, completed with defaults. */
export const expected = ({ want }: Recording): Required<Recording['want']> => ({
  links: [],
  addresses: [],
  routes: [],
  operators: [],
  resolvers: [],
  timeServers: [],
  external: [],
  ...want,
})
