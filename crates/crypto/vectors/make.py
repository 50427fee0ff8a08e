"""Makes packets.txt and keys.txt: known answers for packet protection and key derivation.

Independent of the libraries that sshoal uses: ChaCha20, Poly1305 and GHASH are written here from their
papers, AES blocks come from the openssl program, HMAC and hashes from Python. Slow and not constant-time:
for test vectors only.

    python3 make.py    # beside this file
"""

import hashlib
import hmac
import pathlib
import struct
import subprocess

MASK = 0xFFFFFFFF


def rotate(word, bits):
    return ((word << bits) | (word >> (32 - bits))) & MASK


def chacha_block(key, counter, nonce):
    """The original ChaCha20: 64-bit counter, 64-bit nonce."""
    state = [*struct.unpack("<4I", b"expand 32-byte k"), *struct.unpack("<8I", key)]
    state += [*struct.unpack("<2I", struct.pack("<Q", counter)), *struct.unpack("<2I", nonce)]
    w = state[:]

    def quarter(a, b, c, d):
        for x, y, z, bits in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
            w[x] = (w[x] + w[y]) & MASK
            w[z] = rotate(w[z] ^ w[x], bits)

    for _ in range(10):
        for i in range(4):
            quarter(i, 4 + i, 8 + i, 12 + i)
        for i in range(4):
            quarter(i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4)
    return struct.pack("<16I", *[(a + b) & MASK for a, b in zip(w, state)])


def xor(left, right):
    return bytes(a ^ b for a, b in zip(left, right))


def chacha(key, counter, nonce, data):
    blocks = (len(data) + 63) // 64
    return xor(data, b"".join(chacha_block(key, counter + i, nonce) for i in range(blocks)))


def poly1305(key, message):
    r = int.from_bytes(key[:16], "little") & 0x0FFFFFFC0FFFFFFC0FFFFFFC0FFFFFFF
    accumulator = 0
    for i in range(0, len(message), 16):
        block = int.from_bytes(message[i : i + 16] + b"\1", "little")
        accumulator = (accumulator + block) * r % (2**130 - 5)
    return ((accumulator + int.from_bytes(key[16:], "little")) % 2**128).to_bytes(16, "little")


def aes_blocks(key, data):
    command = ["openssl", "enc", f"-aes-{len(key) * 8}-ecb", "-K", key.hex(), "-nopad"]
    return subprocess.run(command, input=data, capture_output=True, check=True).stdout


def aes_ctr(key, counter, data):
    blocks = range((len(data) + 15) // 16)
    return xor(data, aes_blocks(key, b"".join(((counter + i) % 2**128).to_bytes(16, "big") for i in blocks)))


def ghash(key, data):
    h = int.from_bytes(key, "big")
    y = 0
    for i in range(0, len(data), 16):
        x, v, y = y ^ int.from_bytes(data[i : i + 16], "big"), h, 0
        for bit in range(127, -1, -1):
            if x >> bit & 1:
                y ^= v
            v = (v >> 1) ^ (0xE1 << 120) if v & 1 else v >> 1
    return y.to_bytes(16, "big")


def aes_gcm(key, iv, additional, plain):
    counter = int.from_bytes(iv + b"\0\0\0\1", "big")
    sealed = aes_ctr(key, counter + 1, plain)
    padded = b"".join(data + bytes(-len(data) % 16) for data in (additional, sealed))
    lengths = struct.pack(">QQ", len(additional) * 8, len(sealed) * 8)
    tag = ghash(aes_blocks(key, bytes(16)), padded + lengths)
    return sealed + xor(tag, aes_blocks(key, counter.to_bytes(16, "big")))


def ramp(length, first):
    return bytes((first + i) % 256 for i in range(length))


PAYLOAD = b"sshoal test payload"
# Two packets each: the second lies past the sequence number's end, and past the counters' carries.
SEQUENCES = (0xFFFFFFFF, 0)


def packet(block, counts_length):
    counted = 1 + len(PAYLOAD) + (4 if counts_length else 0)
    padding = block - counted % block
    padding += block if padding < 4 else 0
    header = struct.pack(">IB", 1 + len(PAYLOAD) + padding, padding)
    return header + PAYLOAD + ramp(padding, 0xA0)


def packets():
    for bits in (128, 256):
        key, plain = ramp(bits // 8, 1), packet(16, False)
        for counter in (2**64 - 1, 0):
            iv = ramp(4, 0x40) + counter.to_bytes(8, "big")
            yield f"aes{bits}-gcm@openssh.com", "-", plain[:4] + aes_gcm(key, iv, plain[:4], plain[4:])
    main, header = ramp(32, 1), ramp(32, 33)
    for sequence in SEQUENCES:
        nonce, plain = struct.pack(">Q", sequence), packet(8, False)
        sealed = chacha(header, 0, nonce, plain[:4]) + chacha(main, 1, nonce, plain[4:])
        tag = poly1305(chacha_block(main, 0, nonce)[:32], sealed)
        yield "chacha20-poly1305@openssh.com", "-", sealed + tag
    macs = (("hmac-sha2-256", "sha256"), ("hmac-sha2-512", "sha512"), ("hmac-sha1", "sha1"))
    for bits in (128, 192, 256):
        for mac, digest in macs:
            yield from counter_mode(bits, mac, digest, False)
            yield from counter_mode(bits, mac + "-etm@openssh.com", digest, True)


def counter_mode(bits, mac, digest, encrypt_then_mac):
    key, counter = ramp(bits // 8, 1), 2**128 - 2
    mac_key = ramp(hashlib.new(digest).digest_size, 0x80)
    for sequence in SEQUENCES:
        plain = packet(16, not encrypt_then_mac)
        clear = 4 if encrypt_then_mac else 0
        sealed = plain[:clear] + aes_ctr(key, counter, plain[clear:])
        counter = (counter + len(plain[clear:]) // 16) % 2**128
        signed = struct.pack(">I", sequence) + (sealed if encrypt_then_mac else plain)
        yield f"aes{bits}-ctr", mac, sealed + hmac.digest(mac_key, signed, digest)


def keys():
    secret, exchange_hash, session_id = bytes.fromhex("0000000412345678"), ramp(32, 0), ramp(32, 0x20)
    for digest in ("sha256", "sha384", "sha512"):
        key = hashlib.new(digest, secret + exchange_hash + b"C" + session_id).digest()
        while len(key) < 150:
            key += hashlib.new(digest, secret + exchange_hash + key).digest()
        yield digest, key[:150]


def main():
    directory = pathlib.Path(__file__).parent
    rows = [f"{cipher} {mac} {sealed.hex()}\n" for cipher, mac, sealed in packets()]
    (directory / "packets.txt").write_text("".join(rows))
    (directory / "keys.txt").write_text("".join(f"{digest} {key.hex()}\n" for digest, key in keys()))


main()
