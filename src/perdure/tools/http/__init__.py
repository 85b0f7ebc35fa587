"""HTTP services as tools, from their OpenAPI documents.

source.py      the service, and what the operator says of it       document.py    the document, checked
operations.py  what each operation is called and takes             schemas.py     its schemas, by themselves
tool.py        one operation as a tool                             requests.py    from arguments to a request
client.py      one request, and what is known after it             outcomes.py    what an answer means for the effect
answers.py     what an answer is for the model                     offering.py    which operations are offered
"""

from perdure.tools.http.source import OpenApiTools

__all__ = ["OpenApiTools"]
