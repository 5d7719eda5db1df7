/** A parsed image reference. */
export interface Reference {
  /** Registry host, `docker.io` when the reference names none. */
  domain: string
  repository: string
  tag?: string | undefined
  digest?: string
}

/** An image reference that cannot be parsed. */
export class ImageReferenceError extends Error {
  override name = 'ImageReferenceError'
}

const repositoryPattern = /^[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*(?:\/[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*)*$/
const domainPattern = /^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?(:[0-9]{1,5})?$/
const tagPattern = /^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$/
const digestPattern = /^[a-z0-9]+(?:[.+_-][a-z0-9]+)*:[0-9a-f]{32,}$/

/** Parses an image reference as container tools do; throws ImageReferenceError. */
export function parseReference(text: string): Reference {
  const invalid = (why: string) => new ImageReferenceError(`image reference "${text.slice(0, 300)}": ${why}`)
  if (!text || text.length > 1024) throw invalid('must be 1 to 1024 characters')
  const at = text.indexOf('@')
  const digest = at < 0 ? undefined : text.slice(at + 1)
  if (digest !== undefined && !digestPattern.test(digest)) throw invalid('the digest is not algorithm:hex')
  let rest = at < 0 ? text : text.slice(0, at)
  const colon = rest.lastIndexOf(':')
  let tag: string | undefined
  if (colon > rest.lastIndexOf('/')) {
    tag = rest.slice(colon + 1)
    rest = rest.slice(0, colon)
    if (!tagPattern.test(tag)) throw invalid('the tag is not valid')
  }
  const slash = rest.indexOf('/')
  const head = slash < 0 ? '' : rest.slice(0, slash)
  const named = head.includes('.') || head.includes(':') || head === 'localhost'
  const domain = named ? head : 'docker.io'
  if (!domainPattern.test(domain)) throw invalid('the registry is not a host name')
  let repository = named ? rest.slice(slash + 1) : rest
  if (domain === 'docker.io' && !repository.includes('/')) repository = `library/${repository}`
  if (!repositoryPattern.test(repository)) throw invalid('the repository is not valid')
  return { domain, repository, ...(tag && { tag }), ...(digest && { digest }) }
}

/** Formats a reference in its full form; without tag and digest the tag is `latest`. */
export function formatReference({ domain, repository, tag, digest }: Reference): string {
  const name = `${domain}/${repository}`
  if (!tag && !digest) return `${name}:latest`
  return `${name}${tag ? `:${tag}` : ''}${digest ? `@${digest}` : ''}`
}
