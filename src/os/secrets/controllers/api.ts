import { type Controller, defineController, exclusive, weak } from '../../../cosi/controller.ts'
import type { SpecOf } from '../../../cosi/resource.ts'
import { day, newCertificate, type PemPair, signedBy } from '../../../pki/certificate.ts'
import { newCSR } from '../../../pki/request.ts'
import { connect } from '../../../rpc/client/channel.ts'
import { formatHostPort } from '../../../wire/host-port.ts'
import { MachineType } from '../../config/resources/machine-type.ts'
import { contacts } from '../../contacts.ts'
import { Endpoint } from '../../k8s/resources/endpoint.ts'
import { NetworkStatus } from '../../network/resources/network-status.ts'
import { MaintenanceServiceRequest } from '../../runtime/resources/maintenance-service.ts'
import { TimeStatus } from '../../time/resources/time-status.ts'
import { trustdPort } from '../../trustd-port.ts'
import { decoded, Issued } from '../issued.ts'
import { ApiCertificate } from '../resources/api-certificate.ts'
import { CertSAN } from '../resources/cert-san.ts'
import { MaintenanceRootSecret } from '../resources/maintenance-root-secret.ts'
import { OSRootSecret } from '../resources/os-root-secret.ts'
import { TrustdCertificate } from '../resources/trustd-certificate.ts'

const lifetime = day
/** Retry interval after a failed request to trustd while a certificate is in use. */
const signRetryInterval = 5_000

type Sans = SpecOf<typeof CertSAN>

/** Requests a signature from the trustd instances of the control plane, one after the other. */
export type AskTrustd = (endpoints: readonly string[], ca: string, token: string, csr: string) => Promise<string>

/** Connects over the network. */
export const askTrustd: AskTrustd = async (endpoints, ca, token, csr) => {
  const channel = connect(
    endpoints.map((host) => ({ address: formatHostPort(host, trustdPort), tls: { ca } })),
    { metadata: { token }, connectTimeout: 3_000 },
  )
  try {
    const { crt } = await channel.unary('securityapi.SecurityService/Certificate', { csr: Buffer.from(csr) }, { deadline: 10_000 })
    return Buffer.from(crt).toString('utf8')
  } finally {
    channel.close()
  }
}

/**
 * Certificates of apid. In maintenance mode, one issued by a throw-away authority, for clients that are not verified. On a
 * control plane node, one signed with the cluster's authority. On a worker, one signed by a control plane's trustd.
 */
export const issueApiCertificates = (ask: AskTrustd = askTrustd): Controller => {
  let issued: Issued | undefined
  return defineController({
    name: 'secrets.APIController',
    contacts: contacts.controlPlane,
    inputs: {
      network: weak(NetworkStatus),
      type: weak(MachineType),
      os: weak(OSRootSecret),
      sans: weak(CertSAN),
      time: weak(TimeStatus),
      endpoints: weak(Endpoint),
      maintenanceRoot: weak(MaintenanceRootSecret),
      request: weak(MaintenanceServiceRequest),
    },
    outputs: { api: exclusive(ApiCertificate) },
    async reconcile({ network, type, os, sans, time, endpoints, maintenanceRoot, request, api, log, now, wakeAt, wakeIn }) {
      issued ??= new Issued(now)
      const kind = type.get('machine-type')?.spec
      if (!kind) {
        const ca = maintenanceRoot.get('maintenance')?.spec.ca
        const names = sans.get('maintenance')?.spec
        if (!request.get('maintenance') || !ca || !names) return
        const server = await issued.pair('maintenance', [ca, names], () => serverCertificate(decoded(ca), names, now()))
        api.put('api', { server, skipVerifyingClientCert: true })
        wakeAt(issued.nextRenewal())
        return
      }
      const root = os.get('os')?.spec
      const names = sans.get('api')?.spec
      const net = network.get('status')?.spec
      const ready = root && names && net?.addressReady && net.hostnameReady && time.get('node')?.spec.synced
      if (!ready) return keepPrevious(api)
      const acceptedCAs = root.acceptedCAs ?? []
      const ca = root.issuingCA
      if (ca) {
        const server = await issued.pair('server', [ca, names], () => serverCertificate(decoded(ca), names, now()))
        const client = await issued.pair('client', [ca, names.fqdn], () => clientCertificate(decoded(ca), names, now()))
        api.put('api', { acceptedCAs, server, client, skipVerifyingClientCert: false })
      } else {
        const known = endpoints.list().map(({ spec }) => spec)
        // A control plane may be known by the name in the configuration alone.
        const hosts = [...new Set([...known.flatMap(({ addresses }) => addresses), ...known.flatMap((each) => each.hosts)])]
        // The accepted authorities follow the configuration at once; the previous certificate stays as long as it is valid.
        const keepServing = () => {
          const previous = api.get('api')?.spec.server
          if (!previous || !signedBy(decoded(previous).crt, bundleOf(acceptedCAs))) return false
          api.put('api', { acceptedCAs, server: previous, skipVerifyingClientCert: false })
          return true
        }
        if (hosts.length === 0) return keepServing() ? undefined : keepPrevious(api)
        try {
          const server = await issued.pair('signed', [names, acceptedCAs.map(({ crt }) => crt), root.token], () =>
            signedByTrustd(ask, hosts, root, names),
          )
          api.put('api', { acceptedCAs, server, skipVerifyingClientCert: false })
        } catch (error) {
          if (!keepServing()) throw error
          log.warn('request server certificate failed', { error })
          wakeIn(signRetryInterval)
          return
        }
      }
      wakeAt(issued.nextRenewal())
    },
  })
}

/** Certificates of trustd, on control plane nodes. */
export const issueTrustdCertificates = (): Controller => {
  let issued: Issued | undefined
  return defineController({
    name: 'secrets.TrustdController',
    inputs: { network: weak(NetworkStatus), type: weak(MachineType), os: weak(OSRootSecret), sans: weak(CertSAN), time: weak(TimeStatus) },
    outputs: { trustd: exclusive(TrustdCertificate) },
    async reconcile({ network, type, os, sans, time, trustd, now, wakeAt }) {
      issued ??= new Issued(now)
      const root = os.get('os')?.spec
      const names = sans.get('api')?.spec
      const net = network.get('status')?.spec
      const kind = type.get('machine-type')?.spec
      if (!kind || kind === 'worker' || !root?.issuingCA || !names || !net?.addressReady || !time.get('node')?.spec.synced) return
      const ca = decoded(root.issuingCA)
      const server = await issued.pair('server', [ca, names], () => serverCertificate(ca, names, now(), true))
      trustd.put('trustd', { acceptedCAs: root.acceptedCAs ?? [], server })
      wakeAt(issued.nextRenewal())
    },
  })
}

const bundleOf = (authorities: readonly { crt: string }[]): string =>
  authorities.map(({ crt }) => Buffer.from(crt, 'base64').toString('utf8')).join('\n')

async function signedByTrustd(
  ask: AskTrustd,
  hosts: readonly string[],
  { acceptedCAs = [], token }: Pick<SpecOf<typeof OSRootSecret>, 'acceptedCAs' | 'token'>,
  names: Sans,
): Promise<PemPair> {
  const bundle = bundleOf(acceptedCAs)
  const { csr, key } = newCSR({ subject: { commonName: names.fqdn }, sans: { dns: names.dnsNames, ips: names.ips } })
  const crt = await ask(hosts, bundle, token, csr)
  if (!signedBy(crt, bundle)) throw new Error('trustd signed with an authority that this node does not accept')
  return { crt, key }
}

function clientCertificate(ca: PemPair, { fqdn }: Sans, now: Date): PemPair {
  return newCertificate({
    ca,
    subject: { commonName: fqdn, organizations: ['os:impersonator'] },
    usage: ['clientAuth'],
    lifetime,
    now,
  })
}

function serverCertificate(ca: PemPair, { fqdn, dnsNames, ips }: Sans, now: Date, keyEncipherment = false): PemPair {
  return newCertificate({
    ca,
    subject: { commonName: fqdn },
    sans: { dns: dnsNames, ips },
    usage: ['serverAuth'],
    keyUsage: keyEncipherment ? ['digitalSignature', 'keyEncipherment'] : ['digitalSignature'],
    lifetime,
    now,
  })
}

/** A certificate in use is kept while the inputs of the next one are temporarily missing. */
function keepPrevious(api: { get(id: string): unknown; keep(id: string): void }): void {
  if (api.get('api')) api.keep('api')
}
