import { type Controller, defineController, exclusive, weak } from '../../../cosi/controller.ts'
import { authorityLifetime, newCertificate } from '../../../pki/certificate.ts'
import { addressOnly } from '../../../wire/prefix.ts'
import { declared } from '../../config/public.ts'
import { MachineConfig } from '../../config/resources/machine-config.ts'
import { sharedAddresses } from '../../network/public.ts'
import { HostnameStatus } from '../../network/resources/hostname.ts'
import { NetworkStatus } from '../../network/resources/network-status.ts'
import { NodeAddress } from '../../network/resources/node-address.ts'
import { TimeStatus } from '../../time/resources/time-status.ts'
import { decoded, Issued } from '../issued.ts'
import { EtcdRootSecret } from '../resources/etcd-root-secret.ts'
import { EtcdSecret } from '../resources/etcd-secret.ts'

/** Certificates of etcd: server, peer and clients. */
export const issueEtcdCertificates = (): Controller => {
  let issued: Issued | undefined
  return defineController({
    name: 'secrets.EtcdController',
    inputs: {
      root: weak(EtcdRootSecret),
      network: weak(NetworkStatus),
      time: weak(TimeStatus),
      hostname: weak(HostnameStatus),
      addresses: weak(NodeAddress),
      config: weak(MachineConfig, { id: 'v1alpha1' }),
    },
    outputs: { etcd: exclusive(EtcdSecret) },
    async reconcile({ root, network, time, hostname, addresses, config, etcd, now, wakeAt }) {
      issued ??= new Issued(now)
      const certificates = issued
      const encodedCa = root.get('etcd')?.spec.etcdCA
      const name = hostname.get('hostname')?.spec
      // No member is reached by a virtual IP. Its arrival must not reissue certificates, which would restart the API server.
      const found = declared(config.get('v1alpha1'))
      const shared = new Set(sharedAddresses(found).map(addressOnly))
      const own = addresses
        .get('accumulative-no-k8s')
        ?.spec.addresses.map(addressOnly)
        .filter((address) => !shared.has(address))
      if (!encodedCa || !name || !own || !network.get('status')?.spec.addressReady || !time.get('node')?.spec.synced) return
      const ca = decoded(encodedCa)
      const fqdn = name.domainname ? [`${name.hostname}.${name.domainname}`] : []
      const names = [name.hostname, ...fqdn]
      const from = [encodedCa, own, names]
      const common = { ca, lifetime: authorityLifetime, now: now() }
      const server = await certificates.pair('server', from, () =>
        newCertificate({
          ...common,
          subject: { commonName: name.hostname },
          sans: { dns: [...names, 'localhost'], ips: [...new Set([...own, '127.0.0.1', '::1'])] },
          usage: ['serverAuth', 'clientAuth'],
        }),
      )
      const peer = await certificates.pair('peer', from, () =>
        newCertificate({
          ...common,
          subject: { commonName: name.hostname },
          sans: { dns: names, ips: own },
          usage: ['serverAuth', 'clientAuth'],
        }),
      )
      const client = (commonName: string) =>
        certificates.pair(commonName, encodedCa, () => newCertificate({ ...common, subject: { commonName }, usage: ['clientAuth'] }))
      etcd.put('etcd', { etcd: server, etcdPeer: peer, etcdAdmin: await client('talos'), etcdAPIServer: await client('kube-apiserver') })
      wakeAt(certificates.nextRenewal())
    },
  })
}
