/** Secrets taken out of text that goes to others: logs, resources, configurations. */

const mark = '**REDACTED**'

/** Names of keys whose values are secrets wherever they are. */
const secretKey =
  '(?:[\\w-]*token|key|[\\w-]*secret|secretKey|password|[\\w-]*EncryptionSecret|privateKey|presharedKey|auth|identityToken|passphrase|[\\w-]*-data|talosconfig|kubeconfig)'

const rules: readonly [RegExp, string][] = [
  [
    /-----BEGIN (?=[A-Z0-9 ]*?(?:PRIVATE KEY|SECRET))([A-Z0-9 ]+)-----[\s\S]*?(?:-----END \1-----|$)/g,
    `-----BEGIN $1-----\n${mark}\n-----END $1-----`,
  ],
  // PEM in base64: "-----BEGIN " is "LS0tLS1CRUdJTi".
  [/LS0tLS1CRUdJTi[A-Za-z0-9+/=]{20,}/g, mark],
  [/\beyJ[\w-]{5,}\.[\w-]{5,}\.[\w-]*/g, mark],
  [/\b[a-z0-9]{6}\.[a-z0-9]{16}\b/g, mark],
  [/\b([Aa]uthorization["']?\s*[:=]\s*["']?(?:[Bb]earer|[Bb]asic)\s+)[^\s"']+/g, `$1${mark}`],
  [/(\b[a-z][a-z0-9+.-]*:\/\/[^\s/:@]+:)[^\s/@]+@/gi, `$1${mark}@`],
  // A block scalar below a secret's key, with everything that is indented further.
  [
    new RegExp(`^([ \\t]*(?:- )?)(["']?${secretKey}["']?:[ \\t]*)[|>][-+\\d]*[ \\t]*\\n(?:\\1[ \\t]+[^\\n]*(?:\\n|$)|[ \\t]*\\n)+`, 'gim'),
    `$1$2${mark}\n`,
  ],
  [new RegExp(`^([ \\t]*(?:- )?'?${secretKey}'?:[ \\t]+)(?![|>&*]|\\{\\}|""|''|null\\b|$)[^\\n]+$`, 'gim'), `$1${mark}`],
  [new RegExp(`(["']${secretKey}["']\\s*:\\s*")(?!")(?:[^"\\\\]|\\\\.)+"`, 'gi'), `$1${mark}"`],
]

/** The text without what looks like a secret. Rather too much is taken out than too little. */
export function redact(text: string): string {
  return rules.reduce((left, [pattern, instead]) => left.replace(pattern, instead), text)
}
