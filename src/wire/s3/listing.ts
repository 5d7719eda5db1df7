/** The XML that S3-compatible servers answer with: a few elements, of which only text is read. */

/** A page of a list of objects. */
export interface S3Page {
  readonly objects: readonly { readonly key: string; readonly size: number }[]
  /** Where the next page begins; undefined on the last. */
  readonly next: string | undefined
}

/** Reads an answer to ListObjectsV2 with `encoding-type=url`. */
export function parseS3Page(xml: string): S3Page {
  const contents = xml.split('<Contents>').slice(1)
  const objects = contents.flatMap((body) => {
    const [key, size] = [textIn(body, 'Key'), Number(textIn(body, 'Size') ?? 'none')]
    return key === undefined || !Number.isSafeInteger(size) || size < 0 ? [] : [{ key: decoded(key), size }]
  })
  return { objects, next: textIn(xml, 'IsTruncated') === 'true' ? textIn(xml, 'NextContinuationToken') : undefined }
}

/** What a server states of an error: `Code: Message`; undefined where it states none. */
export function parseS3Error(xml: string): string | undefined {
  const body = xml.split('<Error>')[1]
  if (body === undefined) return undefined
  const text = [textIn(body, 'Code'), textIn(body, 'Message')].filter(Boolean).join(': ')
  return text.replaceAll(/[^\x20-\x7e]/g, ' ').slice(0, 300)
}

/** The text of the first element of a name, without entities but the five of XML. */
export function textIn(xml: string, name: string): string | undefined {
  const [, after] = xml.split(`<${name}>`, 2)
  const end = after?.indexOf(`</${name}>`) ?? -1
  const text = end < 0 ? undefined : after?.slice(0, end)
  return text?.replaceAll(/&(lt|gt|quot|apos|amp);/g, (_, entity: string) => entities[entity] ?? '')
}

const entities: Readonly<Record<string, string>> = { lt: '<', gt: '>', quot: '"', apos: "'", amp: '&' }

function decoded(key: string): string {
  try {
    return decodeURIComponent(key.replaceAll('+', ' '))
  } catch {
    return key
  }
}
