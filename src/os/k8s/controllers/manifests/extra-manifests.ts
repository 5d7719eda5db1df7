import { type Controller, defineController, shared, weak } from '../../../../cosi/controller.ts'
import { parseManifest } from '../../../../kube/object.ts'
import { BodyTooLarge, boundedBody } from '../../../../wire/http/bounded-body.ts'
import type { Outbound } from '../../../outbound.ts'
import { ExtraManifestsConfig } from '../../resources/extra-manifests-config.ts'
import { Manifest } from '../../resources/manifest.ts'

const downloadLimit = 30_000
const mostRedirects = 10
const retryDelay = 15_000
const largest = 4 * 1024 * 1024

/** The operator's manifests, downloaded where a URL is given. A failed one delays none of the others. */
export const loadExtraManifests = ({ outbound }: { outbound: Pick<Outbound, 'fetch'> }): Controller =>
  defineController({
    name: 'k8s.ExtraManifestController',
    inputs: { config: weak(ExtraManifestsConfig, { id: 'extra-manifests' }) },
    outputs: { manifests: shared(Manifest) },
    async reconcile({ config, manifests, log, signal, wakeIn }) {
      for (const manifest of config.get('extra-manifests')?.spec.extraManifests ?? []) {
        const id = `${manifest.priority}-${manifest.name}`
        try {
          const text = manifest.url ? await download(outbound, manifest.url, manifest.extraHeaders, signal) : manifest.inlineManifest
          manifests.put(id, parseManifest(text, manifest.name))
        } catch (error) {
          manifests.keep(id)
          log.warn('load manifest failed', { manifest: manifest.name, error })
          if (manifest.url) wakeIn(retryDelay)
        }
      }
    },
  })

/** Follows redirects. The operator's headers, which may be credentials, are sent only to the host they are meant for. */
async function follow(
  { fetch }: Pick<Outbound, 'fetch'>,
  url: string,
  headers: Record<string, string>,
  signal: AbortSignal,
): Promise<Response> {
  const { origin } = new URL(url)
  let place = url
  for (let redirects = 0; redirects <= mostRedirects; redirects++) {
    const own = new URL(place).origin === origin
    const response = await fetch(place, { headers: own ? headers : {}, signal, redirect: 'manual' })
    const next = response.status >= 300 && response.status < 400 ? response.headers.get('location') : null
    if (!next) return response
    await response.body?.cancel()
    place = new URL(next, place).href
    if (!/^https?:/.test(place) || (origin.startsWith('https:') && !place.startsWith('https:')))
      throw new Error(`download "${url}": it leads to "${place}"`)
  }
  throw new Error(`download "${url}": more than ${mostRedirects} redirects`)
}

async function download(
  outbound: Pick<Outbound, 'fetch'>,
  url: string,
  headers: Record<string, string>,
  outer: AbortSignal,
): Promise<string> {
  const signal = AbortSignal.any([outer, AbortSignal.timeout(downloadLimit)])
  const response = await follow(outbound, url, headers, signal)
  if (!response.ok) throw new Error(`download "${url}": status ${response.status}`)
  const body = await boundedBody(response, largest).catch((error) => {
    throw error instanceof BodyTooLarge ? new Error(`download "${url}": ${error.message}`) : error
  })
  return body.toString()
}
